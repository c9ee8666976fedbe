package objects_test

import (
	"testing"

	"github.com/espalier-dev/espalier/objects"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func hashOf(t *testing.T, sources ...client.Object) string {
	t.Helper()
	sum, err := objects.DataHash(sources...)
	if err != nil {
		t.Fatalf("DataHash returned %v, want no error", err)
	}
	return sum
}

func TestDataHashFollowsWhatObjectsHold(t *testing.T) {
	settings := func(change func(*corev1.ConfigMap)) *corev1.ConfigMap {
		c := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "settings", UID: "a", ResourceVersion: "1"},
			Data:       map[string]string{"a": "1", "b": "2"},
		}
		change(c)
		return c
	}
	secret := func(change func(*corev1.Secret)) *corev1.Secret {
		s := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "password", UID: "b", ResourceVersion: "1"},
			Data:       map[string][]byte{"password": []byte("1234")},
		}
		change(s)
		return s
	}
	base := hashOf(t, settings(func(*corev1.ConfigMap) {}), secret(func(*corev1.Secret) {}))
	for name, test := range map[string]struct {
		settings func(*corev1.ConfigMap)
		secret   func(*corev1.Secret)
		same     bool
	}{
		"nothing":                     {same: true},
		"metadata of the config map":  {settings: func(c *corev1.ConfigMap) { c.ResourceVersion, c.UID = "2", "c" }, same: true},
		"data of the config map":      {settings: func(c *corev1.ConfigMap) { c.Data["a"] = "3" }},
		"binary data":                 {settings: func(c *corev1.ConfigMap) { c.BinaryData = map[string][]byte{"c": {1}} }},
		"a new version of the secret": {secret: func(s *corev1.Secret) { s.ResourceVersion = "2" }},
		"another secret":              {secret: func(s *corev1.Secret) { s.UID = "d" }},
		// L9: who guesses the password learns nothing from the digest.
		"the password alone": {secret: func(s *corev1.Secret) { s.Data["password"] = []byte("5678") }, same: true},
	} {
		t.Run(name, func(t *testing.T) {
			if test.settings == nil {
				test.settings = func(*corev1.ConfigMap) {}
			}
			if test.secret == nil {
				test.secret = func(*corev1.Secret) {}
			}
			if got := hashOf(t, settings(test.settings), secret(test.secret)); (got == base) != test.same {
				t.Errorf("that the hash stays is %t, want %t", got == base, test.same)
			}
		})
	}
	if one, two := hashOf(t, nil, settings(func(*corev1.ConfigMap) {})), hashOf(t, settings(func(*corev1.ConfigMap) {})); one == two {
		t.Error("an object that is missing changes nothing, want another hash")
	}
}

func TestDataHashRefusesOtherTypes(t *testing.T) {
	_, err := objects.DataHash(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}})
	const want = "unable to hash the data of *v1.Pod shop/web: it is neither a ConfigMap nor a Secret"
	if err == nil || err.Error() != want {
		t.Errorf("DataHash returned %v, want %q", err, want)
	}
}
