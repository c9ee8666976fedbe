package registry_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// names returns short texts of all kinds of characters, and long ones.
func names() []string {
	all, last := []string{""}, []string{""}
	for range 4 {
		var next []string
		for _, name := range last {
			for _, c := range []string{"a", "Z", "0", "-", "_", ".", "/", " ", "é"} {
				next = append(next, name+c)
			}
		}
		all, last = append(all, next...), next
	}
	label := strings.Repeat("a", 63)
	for _, long := range []string{label, strings.Repeat(label+".", 3) + strings.Repeat("a", 61)} {
		all = append(all, long[1:], long, long+"a", long+"/a", long+"a/a", "a/"+long, "a/"+long+"a")
	}
	return all
}

// TestLabelsAndNames shows that labels and names are validated as the library does it.
func TestLabelsAndNames(t *testing.T) {
	t.Parallel()
	metadata := field.NewPath("metadata")
	template := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}}
	config := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
	service := &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}}
	_, deployments := builtIn(t, template)
	_, configs := builtIn(t, config)
	_, services := builtIn(t, service)
	for _, name := range names() {
		for _, labels := range []map[string]string{{name: ""}, {"a": name}} {
			obj := config.DeepCopy()
			obj.Namespace, obj.Name, obj.Labels = "ns", "a", labels
			want := metav1validation.ValidateLabels(labels, metadata.Child("labels"))
			compareErrors(t, configs.Validate(obj), want, labels)

			deployment := template.DeepCopy()
			deployment.Namespace, deployment.Name = "ns", "a"
			deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
			deployment.Spec.Template.Labels = labels
			errs := deployments.Validate(deployment)
			want = metav1validation.ValidateLabels(labels, field.NewPath("spec", "selector", "matchLabels"))
			compareErrors(t, within(errs, "spec.selector.matchLabels"), want, labels)
			want = metav1validation.ValidateLabels(labels, field.NewPath("spec", "template", "labels"))
			compareErrors(t, within(errs, "spec.template.labels"), want, labels)
			if mismatch := len(within(errs, "spec.template.metadata.labels")) > 0; mismatch {
				t.Errorf("the labels %q do not select themselves, want them to", labels)
			}
		}
		if name == "" {
			continue
		}
		obj, at := config.DeepCopy(), metadata.Child("name")
		obj.Namespace, obj.Name = "ns", name
		compareErrors(t, configs.Validate(obj), invalid(at, name, apivalidation.NameIsDNSSubdomain(name, false)), name)
		svc := service.DeepCopy()
		svc.Namespace, svc.Name = "ns", name
		compareErrors(t, within(services.Validate(svc), "metadata.name"),
			invalid(at, name, apivalidation.NameIsDNSLabel(name, false)), name)
	}
}

func invalid(at *field.Path, value string, messages []string) (errs field.ErrorList) {
	for _, message := range messages {
		errs = append(errs, field.Invalid(at, value, message))
	}
	return errs
}

// within returns the errors of a field.
func within(errs field.ErrorList, name string) field.ErrorList {
	return slices.DeleteFunc(slices.Clone(errs), func(err *field.Error) bool { return err.Field != name })
}

func compareErrors(t *testing.T, got, want field.ErrorList, of any) {
	t.Helper()
	if !slices.EqualFunc(got, want, func(a, b *field.Error) bool { return a.Error() == b.Error() }) {
		t.Errorf("%q: got %v, want %v", of, got, want)
	}
}
