package main

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/plugins"
)

// keyEnvironment is the environment variable with the key that passwords are made of. The operator gives it to the
// program.
const keyEnvironment = "POSTGRES_PASSWORD_KEY"

const (
	user = "app"
	port = 5432
	// The memory of a server, in MiB.
	minMemory, maxMemory, defaultMemory = 64, 65536, 256
)

// server says what a server of PostgreSQL consists of.
type server struct {
	key    []byte
	newest string
}

// spec is the part of an owner's spec that the plugin reads.
type spec struct {
	Database struct {
		MemoryMi int64 `json:"memoryMi"`
	} `json:"database"`
}

// dependents returns the password, the Service, the server, and how to connect to it, once its address is known.
func (s server) dependents(_ context.Context, r plugins.Request) ([]*plugins.Dependent, error) {
	var asked spec
	if err := r.Owner.Decode(&asked); err != nil {
		return nil, plugins.Invalid(err.Error())
	}
	memory := cmp.Or(asked.Database.MemoryMi, defaultMemory)
	if memory < minMemory || memory > maxMemory {
		return nil, plugins.Invalid(fmt.Sprintf("database.memoryMi is %d: give %d to %d", memory, minMemory, maxMemory))
	}
	name := r.Owner.Name + "-database"
	password := s.password(r.Owner)
	address, known := r.Values["address"]
	connection := plugins.Owns("connection", connectionOf(name, password, address)).Needs("address")
	if !known {
		connection.Pending()
	}
	return []*plugins.Dependent{
		plugins.Owns("password", secretOf(name, "password", password)).CreateOnly(),
		plugins.Owns("service", serviceOf(name)).Yields("address", "spec", "clusterIP"),
		plugins.Owns("server", serverOf(name, cmp.Or(r.Version, s.newest), memory)).After("password"),
		connection,
	}, nil
}

// password returns the password of an owner. The same request has the same answer, so it is not made by chance.
func (s server) password(owner plugins.Owner) string {
	sum := hmac.New(sha256.New, s.key)
	fmt.Fprintf(sum, "%s/%s", owner.Namespace, owner.Name)
	return hex.EncodeToString(sum.Sum(nil))
}

// secretOf returns a Secret with one value.
func secretOf(name, key, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-" + key}, Data: map[string][]byte{key: []byte(value)},
	}
}

// connectionOf returns the Secret that a shop connects by.
func connectionOf(name, password, address string) *corev1.Secret {
	location := url.URL{
		Scheme: "postgres", User: url.UserPassword(user, password), Host: fmt.Sprintf("%s:%d", address, port),
		Path: user,
	}
	return secretOf(name, "url", location.String())
}

func serviceOf(name string) *corev1.Service {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}}
	service.Spec.Ports = []corev1.ServicePort{{Name: "postgres", Port: port}}
	service.Spec.Selector = labelsOf(name)
	return service
}

func serverOf(name, version string, memory int64) *appsv1.StatefulSet {
	container := corev1.Container{
		Name: "postgres", Image: "docker.io/library/postgres:" + version,
		Env: []corev1.EnvVar{
			{Name: "POSTGRES_USER", Value: user},
			{Name: "POSTGRES_PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: name + "-password"}, Key: "password",
			}}},
			{Name: "PGDATA", Value: "/data/postgres"},
		},
		Ports:        []corev1.ContainerPort{{Name: "postgres", ContainerPort: port}},
		VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
	}
	container.Resources.Limits = corev1.ResourceList{
		corev1.ResourceMemory: *resource.NewQuantity(memory<<20, resource.BinarySI),
	}
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{
		corev1.ResourceStorage: *resource.NewQuantity(1<<30, resource.BinarySI),
	}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	set.Spec.ServiceName = name
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labelsOf(name)}
	set.Spec.Template.Labels = labelsOf(name)
	set.Spec.Template.Spec.Containers = []corev1.Container{container}
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim}
	return set
}

func labelsOf(name string) map[string]string { return map[string]string{"database": name} }
