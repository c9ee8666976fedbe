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

// EnsureContainer makes the pods have a container, which takes the place of the one of the same name.
func EnsureContainer(pods *corev1.PodTemplateSpec, container corev1.Container) error {
	if pods == nil {
		return missing("pod template")
	}
	return ensureContainer(&pods.Spec.Containers, "container", container)
}

// EnsureInitContainer makes the pods have an init container, which takes the place of the one of the same name.
func EnsureInitContainer(pods *corev1.PodTemplateSpec, container corev1.Container) error {
	if pods == nil {
		return missing("pod template")
	}
	return ensureContainer(&pods.Spec.InitContainers, "init container", container)
}

func ensureContainer(list *[]corev1.Container, kind string, container corev1.Container) error {
	if container.Name == "" {
		return fmt.Errorf("the %s has no name", kind)
	}
	*list = ensure(*list, *container.DeepCopy(), sameContainer(container.Name))
	return nil
}

// RemoveContainer makes the pods have no container of a name, which is not an init container.
func RemoveContainer(pods *corev1.PodTemplateSpec, name string) error {
	if pods == nil {
		return missing("pod template")
	}
	pods.Spec.Containers = remove(pods.Spec.Containers, sameContainer(name))
	return nil
}

// RemoveInitContainer makes the pods have no init container of a name.
func RemoveInitContainer(pods *corev1.PodTemplateSpec, name string) error {
	if pods == nil {
		return missing("pod template")
	}
	pods.Spec.InitContainers = remove(pods.Spec.InitContainers, sameContainer(name))
	return nil
}

func anyContainer(corev1.Container) bool {
	return true
}

func sameContainer(name string) func(corev1.Container) bool {
	return func(c corev1.Container) bool { return c.Name == name }
}

// EnsureEnv makes a container have environment variables, each of which takes the place of the one of the same name.
func EnsureEnv(container *corev1.Container, variables ...corev1.EnvVar) error {
	if container == nil {
		return missing("container")
	}
	env := container.Env
	for _, variable := range variables {
		if variable.Name == "" {
			return errors.New("an environment variable has no name")
		}
		env = ensure(env, *variable.DeepCopy(), func(e corev1.EnvVar) bool { return e.Name == variable.Name })
	}
	container.Env = env
	return nil
}

// RemoveEnv makes a container have no environment variables of some names.
func RemoveEnv(container *corev1.Container, names ...string) error {
	if container == nil {
		return missing("container")
	}
	container.Env = remove(container.Env, func(e corev1.EnvVar) bool { return slices.Contains(names, e.Name) })
	return nil
}

// EnsureVolume makes the pods have a volume, which takes the place of the one of the same name.
func EnsureVolume(pods *corev1.PodTemplateSpec, volume corev1.Volume) error {
	if pods == nil {
		return missing("pod template")
	}
	if volume.Name == "" {
		return errors.New("the volume has no name")
	}
	same := func(v corev1.Volume) bool { return v.Name == volume.Name }
	pods.Spec.Volumes = ensure(pods.Spec.Volumes, *volume.DeepCopy(), same)
	return nil
}

// RemoveVolume makes the pods have no volume of a name. What mounts it stays, see [RemoveVolumeMount].
func RemoveVolume(pods *corev1.PodTemplateSpec, name string) error {
	if pods == nil {
		return missing("pod template")
	}
	pods.Spec.Volumes = remove(pods.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
	return nil
}

// EnsureVolumeMount makes a container mount a volume, in place of what it mounts at the same path.
func EnsureVolumeMount(container *corev1.Container, mount corev1.VolumeMount) error {
	if container == nil {
		return missing("container")
	}
	if mount.Name == "" || mount.MountPath == "" {
		return fmt.Errorf("the mount %q at %q needs the name of a volume and a path", mount.Name, mount.MountPath)
	}
	same := func(m corev1.VolumeMount) bool { return m.MountPath == mount.MountPath }
	container.VolumeMounts = ensure(container.VolumeMounts, *mount.DeepCopy(), same)
	return nil
}

// RemoveVolumeMount makes a container mount nothing at a path.
func RemoveVolumeMount(container *corev1.Container, path string) error {
	if container == nil {
		return missing("container")
	}
	same := func(m corev1.VolumeMount) bool { return m.MountPath == path }
	container.VolumeMounts = remove(container.VolumeMounts, same)
	return nil
}
