package edit

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Container calls a function with the container of a name, which is not an init container. It is an error if there is
// none.
func Container(pods *corev1.PodTemplateSpec, name string, edit func(container *corev1.Container) error) error {
	if pods == nil {
		return missing("pod template")
	}
	return editContainer(&pods.Spec.Containers, "container", name, edit)
}

// InitContainer calls a function with the init container of a name. It is an error if there is none.
func InitContainer(pods *corev1.PodTemplateSpec, name string, edit func(container *corev1.Container) error) error {
	if pods == nil {
		return missing("pod template")
	}
	return editContainer(&pods.Spec.InitContainers, "init container", name, edit)
}

func editContainer(list *[]corev1.Container, kind, name string, edit func(*corev1.Container) error) error {
	if !slices.ContainsFunc(*list, sameContainer(name)) {
		return fmt.Errorf("there is no %s %q", kind, name)
	}
	return editContainers(list, kind, sameContainer(name), edit)
}

// EachContainer calls a function with each container, in order. Init containers are left out.
func EachContainer(pods *corev1.PodTemplateSpec, edit func(container *corev1.Container) error) error {
	if pods == nil {
		return missing("pod template")
	}
	return editContainers(&pods.Spec.Containers, "container", anyContainer, edit)
}

// EachInitContainer calls a function with each init container, in order.
func EachInitContainer(pods *corev1.PodTemplateSpec, edit func(container *corev1.Container) error) error {
	if pods == nil {
		return missing("pod template")
	}
	return editContainers(&pods.Spec.InitContainers, "init container", anyContainer, edit)
}

// editContainers edits copies of selected containers, and makes them the list if no function returns an error.
func editContainers(
	list *[]corev1.Container, kind string, selected func(corev1.Container) bool, edit func(*corev1.Container) error,
) error {
	if edit == nil {
		return errNoFunction
	}
	edited := slices.Clone(*list)
	for i, container := range *list {
		if !selected(container) {
			continue
		}
		container.DeepCopyInto(&edited[i])
		if err := edit(&edited[i]); err != nil {
			return fmt.Errorf("%s %q: %w", kind, container.Name, err)
		}
	}
	*list = edited
	return nil
}

func anyContainer(corev1.Container) bool {
	return true
}

func sameContainer(name string) func(corev1.Container) bool {
	return func(c corev1.Container) bool { return c.Name == name }
}

// EnsureEnv makes a container have environment variables. Each takes the place of the one of the same name as a whole,
// or is appended if there is none. The order of the others stays.
func EnsureEnv(container *corev1.Container, variables ...corev1.EnvVar) error {
	if container == nil {
		return missing("container")
	}
	env := container.Env
	for _, variable := range variables {
		if variable.Name == "" {
			return errors.New("an environment variable has no name")
		}
		env = ensureVariable(env, *variable.DeepCopy())
	}
	container.Env = env
	return nil
}

// ensureVariable returns a copy of the list with a variable in the place of the first one of its name, without others
// of that name, or at the end.
func ensureVariable(env []corev1.EnvVar, variable corev1.EnvVar) []corev1.EnvVar {
	same := func(e corev1.EnvVar) bool { return e.Name == variable.Name }
	changed := slices.Clone(env)
	at := slices.IndexFunc(changed, same)
	if at < 0 {
		return append(changed, variable)
	}
	changed[at] = variable
	return append(changed[:at+1], slices.DeleteFunc(changed[at+1:], same)...)
}
