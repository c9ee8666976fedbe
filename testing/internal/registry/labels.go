package registry

import (
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The library matches regular expressions, which takes most of the time of a validation. So what is usual is accepted
// here without it: labels, and names of labels and objects. The library decides what is not usual, and says what is
// wrong with it.

// validateLabels is [metav1validation.ValidateLabels].
func validateLabels(labels map[string]string, at *field.Path) field.ErrorList {
	if areUsual(labels) {
		return nil
	}
	return metav1validation.ValidateLabels(labels, at)
}

func validateSelector(selector *metav1.LabelSelector, at *field.Path) field.ErrorList {
	if selector == nil || len(selector.MatchExpressions) == 0 && areUsual(selector.MatchLabels) {
		return nil
	}
	return metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, at)
}

// withoutUsual returns the object, without its labels if these are usual.
func withoutUsual(obj metav1.Object) metav1.Object {
	if areUsual(obj.GetLabels()) {
		return unlabelled{obj}
	}
	return obj
}

// unlabelled is an object without its labels.
type unlabelled struct{ metav1.Object }

func (unlabelled) GetLabels() map[string]string { return nil }

func subdomainName(name string, prefix bool) []string {
	if isUsualSubdomain(name) {
		return nil
	}
	return apivalidation.NameIsDNSSubdomain(name, prefix)
}

func labelName(name string, prefix bool) []string {
	if isUsual(name, isLower) {
		return nil
	}
	return apivalidation.NameIsDNSLabel(name, prefix)
}

func areUsual(labels map[string]string) bool {
	for key, value := range labels {
		name := key
		if prefix, rest, ok := strings.Cut(key, "/"); ok {
			if !isUsualSubdomain(prefix) {
				return false
			}
			name = rest
		}
		if !isUsual(name, isNameRune) || value != "" && !isUsual(value, isNameRune) {
			return false
		}
	}
	return true
}

func isUsualSubdomain(name string) bool {
	if len(name) > validation.DNS1123SubdomainMaxLength {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if !isUsual(label, isLower) {
			return false
		}
	}
	return true
}

// isUsual reports whether a name has up to 63 of the characters, and begins and ends with a letter or digit.
func isUsual(name string, allowed func(c byte) bool) bool {
	if name == "" || len(name) > validation.DNS1123LabelMaxLength {
		return false
	}
	for i := range len(name) {
		if !allowed(name[i]) {
			return false
		}
	}
	return isLetterOrDigit(name[0]) && isLetterOrDigit(name[len(name)-1])
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' }

func isNameRune(c byte) bool { return isLetterOrDigit(c) || c == '-' || c == '_' || c == '.' }

func isLetterOrDigit(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
