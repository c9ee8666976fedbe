package registry

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// completeSecret sets the type, and moves stringData, which is write-only, to data: Kubernetes API reference, Secret v1
// core.
func completeSecret(s, _ *corev1.Secret) {
	setIfZero(&s.Type, corev1.SecretTypeOpaque)
	if len(s.StringData) > 0 && s.Data == nil {
		s.Data = make(map[string][]byte, len(s.StringData))
	}
	for key, value := range s.StringData {
		s.Data[key] = []byte(value)
	}
	s.StringData = nil
}

// requiredKeys are those that a secret of a type must have, see "Types of Secret" in the documentation of Secret.
var requiredKeys = map[corev1.SecretType][]string{
	corev1.SecretTypeDockercfg:        {corev1.DockerConfigKey},
	corev1.SecretTypeDockerConfigJson: {corev1.DockerConfigJsonKey},
	corev1.SecretTypeSSHAuth:          {corev1.SSHAuthPrivateKey},
	corev1.SecretTypeTLS:              {corev1.TLSCertKey, corev1.TLSPrivateKeyKey},
}

func validateSecret(s, old *corev1.Secret) field.ErrorList {
	data := field.NewPath("data")
	var errs field.ErrorList
	size := 0
	for _, key := range slices.Sorted(maps.Keys(s.Data)) {
		errs = append(errs, validateConfigKey(data, key)...)
		size += len(s.Data[key])
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(data, "", corev1.MaxSecretSize))
	}
	for _, key := range requiredKeys[s.Type] {
		if _, ok := s.Data[key]; !ok {
			errs = append(errs, field.Required(data.Key(key), ""))
		}
	}
	for _, key := range []string{corev1.DockerConfigKey, corev1.DockerConfigJsonKey} {
		value, ok := s.Data[key]
		if ok && slices.Contains(requiredKeys[s.Type], key) && json.Unmarshal(value, &map[string]any{}) != nil {
			errs = append(errs, field.Invalid(data.Key(key), "<secret contents redacted>", "must be a JSON object"))
		}
	}
	if s.Type == corev1.SecretTypeBasicAuth {
		errs = append(errs, validateBasicAuth(s.Data, data)...)
	}
	if s.Type == corev1.SecretTypeServiceAccountToken && s.Annotations[corev1.ServiceAccountNameKey] == "" {
		errs = append(errs, field.Required(metadata.Child("annotations").Key(corev1.ServiceAccountNameKey), ""))
	}
	if old == nil {
		return errs
	}
	if s.Type != old.Type {
		errs = append(errs, immutable(field.NewPath("type"), s.Type))
	}
	if isTrue(old.Immutable) && !isTrue(s.Immutable) {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), whenImmutable))
	}
	if isTrue(old.Immutable) && !equality.Semantic.DeepEqual(s.Data, old.Data) {
		errs = append(errs, field.Forbidden(data, whenImmutable))
	}
	return errs
}

// validateBasicAuth requires one of two keys.
func validateBasicAuth(data map[string][]byte, at *field.Path) field.ErrorList {
	_, username := data[corev1.BasicAuthUsernameKey]
	_, password := data[corev1.BasicAuthPasswordKey]
	if username || password {
		return nil
	}
	return field.ErrorList{
		field.Required(at.Key(corev1.BasicAuthUsernameKey), ""),
		field.Required(at.Key(corev1.BasicAuthPasswordKey), ""),
	}
}

const whenImmutable = "field is immutable when `immutable` is set"

func validateConfigMap(c, old *corev1.ConfigMap) field.ErrorList {
	var errs field.ErrorList
	data, binaryData := field.NewPath("data"), field.NewPath("binaryData")
	size := 0
	for _, key := range slices.Sorted(maps.Keys(c.Data)) {
		errs = append(errs, validateConfigKey(data, key)...)
		if _, ok := c.BinaryData[key]; ok {
			errs = append(errs, field.Invalid(data.Key(key), key, "duplicate of key present in binaryData"))
		}
		size += len(c.Data[key])
	}
	for _, key := range slices.Sorted(maps.Keys(c.BinaryData)) {
		errs = append(errs, validateConfigKey(binaryData, key)...)
		size += len(c.BinaryData[key])
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(field.NewPath(""), "", corev1.MaxSecretSize))
	}
	if old == nil || !isTrue(old.Immutable) {
		return errs
	}
	if !isTrue(c.Immutable) {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), whenImmutable))
	}
	if !equality.Semantic.DeepEqual(c.Data, old.Data) {
		errs = append(errs, field.Forbidden(data, whenImmutable))
	}
	if !equality.Semantic.DeepEqual(c.BinaryData, old.BinaryData) {
		errs = append(errs, field.Forbidden(binaryData, whenImmutable))
	}
	return errs
}

// validateConfigKey says what is wrong with a key, see "ConfigMap object" and "Constraints on Secret names and data" in
// the documentation.
func validateConfigKey(at *field.Path, key string) field.ErrorList {
	return invalid(at.Key(key), key, validation.IsConfigMapKey(key))
}

func isTrue(b *bool) bool { return b != nil && *b }
