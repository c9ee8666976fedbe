package stuck_test

import (
	"context"
	"fmt"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Manifests, in which NAME is the name of the resource.
const (
	config  = "{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-config}, data: {color: blue}}"
	server1 = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME-server, annotations: {espalier.dev/apply-order: "1"}}
spec:
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: main, image: shop:1}]}`
	jobs = "{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-jobs, annotations: {espalier.dev/apply-order: '2'}}}"
)

// bundles are what keeps a component.
var bundles = map[string]story{
	"wave-waits": {
		plant: func(s *scene) { s.bundle(config, server1, jobs) },
		mend:  func(s *scene) { s.rolledOut("server") },
	},
	"component-suspended": {
		plant: func(s *scene) {
			a := resources.NewAssembly(s.namespace, s.name, s.manifests(config)...)
			a.Spec.Suspend = true
			s.creates(a)
		},
		mend: func(s *scene) { s.patches(s.resource, `{"spec":{"suspend":false}}`) },
	},
	"type-in-use": {
		plant: func(s *scene) {
			content, err := yaml.Marshal(s.typeOf())
			if err != nil {
				s.Fatal(err)
			}
			s.bundle(config, string(content))
			s.settles()
			eventually(s, "no instance can be created", func(ctx context.Context) error {
				return s.Create(ctx, s.instance())
			})
			s.deletes(s.resource)
		},
		mend: func(s *scene) { s.deletes(s.instance()) },
		goes: true,
	},
	"fight": {
		plant: func(s *scene) {
			s.bundle(config)
			s.settles()
			s.insists("red")
		},
		mend: func(s *scene) {
			ignored := "{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-config, " +
				"annotations: {espalier.dev/ignore-fields: /data/color}}, data: {color: blue}}"
			s.desires(ignored)
		},
	},
	"manifest-wrong": {
		plant: func(s *scene) { s.bundle(config, "{apiVersion: v1, metadata: {name: NAME-jobs}}") },
		mend:  func(s *scene) { s.desires(config) },
	},
	"empty-set": {
		plant: func(s *scene) {
			s.bundle(config)
			s.settles()
			s.desires()
		},
		mend: func(s *scene) { s.desires(config) },
	},
	"cluster-unreachable": {
		plant: func(s *scene) {
			gone := plane.Config(s)
			gone.Host = "https://127.0.0.1:1"
			s.made(s.kubeconfig(gone))
			a := resources.NewAssembly(s.namespace, s.name, s.manifests(config)...)
			a.Spec.KubeConfig = &generator.KubeConfigSpec{SecretRef: generator.SecretKeyReference{Name: "north"}}
			s.creates(a)
		},
		mend: func(s *scene) {
			if err := s.Update(s.Context(), s.kubeconfig(plane.Config(s))); err != nil {
				s.Fatal(err)
			}
		},
	},
	"deletion-waits": {
		plant: func(s *scene) {
			s.bundle(config)
			s.settles()
			s.patches(&corev1.ConfigMap{ObjectMeta: s.part("config")},
				`{"metadata":{"finalizers":["backup.example.com/archive"]}}`)
			s.deletes(s.resource)
		},
		mend: func(s *scene) {
			s.patches(&corev1.ConfigMap{ObjectMeta: s.part("config")}, `{"metadata":{"finalizers":null}}`)
		},
		goes: true,
	},
}

// desires changes the manifests.
func (s *scene) desires(manifests ...string) {
	s.Helper()
	a := resources.NewAssembly(s.namespace, s.name, s.manifests(manifests...)...)
	raw, err := yaml.Marshal(map[string]any{"spec": map[string]any{"objects": a.Spec.Objects}})
	if err != nil {
		s.Fatal(err)
	}
	patch, err := yaml.YAMLToJSON(raw)
	if err != nil {
		s.Fatal(err)
	}
	s.patches(s.resource, string(patch))
}

func (s *scene) kindOf() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: s.namespace + ".example.com", Version: "v1", Kind: "Order"}
}

func (s *scene) typeOf() client.Object {
	crd := definition(s.kindOf(), "orders")
	crd.GetObjectKind().SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	return crd
}

// instance is one that somebody else has made of the type of the component.
func (s *scene) instance() client.Object {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(s.kindOf())
	u.SetNamespace(s.namespace)
	u.SetName("first")
	return u
}

// insists has another client set the color of the ConfigMap whenever it is another one, until the test ends.
func (s *scene) insists(color string) {
	s.Helper()
	watching, err := client.NewWithWatch(plane.Config(s), client.Options{Scheme: scheme})
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	events, err := watching.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace(s.namespace))
	if err != nil {
		s.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range events.ResultChan() {
			if c, ok := event.Object.(*corev1.ConfigMap); ok && c.Name == s.name+"-config" && c.Data["color"] != color {
				patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"color":%q}}`, color))
				err := watching.Patch(ctx, c, patch, client.FieldOwner("painter"))
				if client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
					s.Errorf("the color of %s cannot be set: %v", c.Name, err)
				}
			}
		}
		if ctx.Err() == nil {
			s.Error("the watch of ConfigMaps has ended")
		}
	}()
	s.Cleanup(func() {
		cancel()
		events.Stop()
		<-done
	})
}

// kubeconfig is a Secret that leads to a cluster.
func (s *scene) kubeconfig(config *rest.Config) *corev1.Secret {
	s.Helper()
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {
			Server: config.Host, CertificateAuthorityData: config.CAData,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {
			ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken,
		}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	})
	if err != nil {
		s.Fatal(err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "north"}, Data: map[string][]byte{"value": content},
	}
}
