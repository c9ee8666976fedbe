package controller

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	"github.com/espalier-dev/espalier/generator"
)

// Prefix is the prefix of the labels and annotations on the objects of platforms.
const Prefix = "platform.example.com"

// The waves in which the objects are applied. Each begins when the one before is ready.
const (
	// foundations are what the other waves need: the type, the rights, and the settings.
	foundations = iota
	// migrations bring the data of an older release up to date. They are removed once that is done.
	migrations
	// contents are what people see.
	contents
)

// Objects returns the objects of a platform of that namespace and name. The result depends on the arguments alone.
func Objects(namespace, name string, spec *v1alpha1.PlatformSpec) ([]client.Object, error) {
	features, err := featuresOf(spec)
	if err != nil {
		return nil, err
	}
	p := parts{namespace: namespace, name: name, version: spec.Version, dashboards: features.Has(v1alpha1.Dashboards)}
	objects := []client.Object{p.serviceAccount(), p.clusterRole(), p.clusterRoleBinding(), p.settings(), p.migration()}
	if p.dashboards {
		definition, err := dashboardCRD()
		if err != nil {
			return nil, err
		}
		objects = append(objects, definition, p.overview())
	}
	if features.Has(v1alpha1.Portal) {
		objects = append(objects, p.portal())
	}
	return objects, nil
}

// objectsOf makes the objects of platforms.
type objectsOf struct{}

var (
	_ generator.Generator     = objectsOf{}
	_ generator.Deterministic = objectsOf{}
)

// Generate implements [generator.Generator].
func (objectsOf) Generate(
	_ context.Context, namespace, name string, parameters generator.Unstructurable,
) ([]client.Object, error) {
	spec, ok := parameters.(*v1alpha1.PlatformSpec)
	if !ok {
		return nil, fmt.Errorf("the parameters are a %T, not the spec of a platform", parameters)
	}
	return Objects(namespace, name, spec)
}

// Deterministic implements [generator.Deterministic].
func (objectsOf) Deterministic() bool { return true }

// SettingsName is the name of the ConfigMap of settings of the platform name.
func SettingsName(name string) string { return name + "-settings" }

// MigrationName is the name of the ConfigMap of the migration.
func MigrationName(name string) string { return name + "-migration" }

// OverviewName is the name of the first dashboard.
func OverviewName(name string) string { return name + "-overview" }

// PortalName is the name of the ConfigMap of the portal.
func PortalName(name string) string { return name + "-portal" }

// ViewerName is the name of the ServiceAccount of the viewer.
func ViewerName(name string) string { return name + "-viewer" }

// ViewerRoleName is the name of the ClusterRole and of its binding. They have no namespace, so the name contains it.
func ViewerRoleName(namespace, name string) string {
	return "platform-" + namespace + "-" + ViewerName(name)
}

// The keys in the ConfigMap of the migration. The program that carries it out sets the second to the value of the
// first.
const (
	MigrateTo = "to"
	Migrated  = "migrated"
)

type parts struct {
	namespace, name, version string
	dashboards               bool
}

// meta returns the metadata of an object in a wave. Further annotations are given as names and values, in turns.
func (p parts) meta(name string, wave int, annotations ...string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Namespace: p.namespace, Name: name, Annotations: map[string]string{}}
	annotations = append(annotations, generator.AnnotationApplyOrder, strconv.Itoa(wave))
	for i := 0; i < len(annotations); i += 2 {
		meta.Annotations[Prefix+"/"+annotations[i]] = annotations[i+1]
	}
	return meta
}

func (p parts) clusterMeta(name string) metav1.ObjectMeta {
	meta := p.meta(name, foundations)
	meta.Namespace = ""
	return meta
}

// serviceAccount is the account that may read what the platform has.
func (p parts) serviceAccount() client.Object {
	return &corev1.ServiceAccount{ObjectMeta: p.meta(ViewerName(p.name), foundations)}
}

// clusterRole grants only what the operator may do itself. The API server would refuse anything else.
func (p parts) clusterRole() client.Object {
	reads := func(group, resource string) rbacv1.PolicyRule {
		verbs := []string{"get", "list", "watch"}
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	rules := []rbacv1.PolicyRule{reads("", "configmaps")}
	if p.dashboards {
		rules = append(rules, reads(DashboardKind.Group, "dashboards"))
	}
	return &rbacv1.ClusterRole{ObjectMeta: p.clusterMeta(ViewerRoleName(p.namespace, p.name)), Rules: rules}
}

func (p parts) clusterRoleBinding() client.Object {
	name := ViewerRoleName(p.namespace, p.name)
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: p.clusterMeta(name),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Namespace: p.namespace, Name: ViewerName(p.name),
		}},
	}
}

func (p parts) settings() client.Object {
	return &corev1.ConfigMap{
		ObjectMeta: p.meta(SettingsName(p.name), foundations),
		Data:       map[string]string{"version": p.version, "retention": "30d"},
	}
}

// migration is carried out by another program, as a Job would be. It is needed until that is done, and again for
// another version.
func (p parts) migration() client.Object {
	return &corev1.ConfigMap{
		ObjectMeta: p.meta(MigrationName(p.name), migrations,
			generator.AnnotationPurgeOrder, strconv.Itoa(migrations),
			generator.AnnotationReadyWhen,
			"has(object.data."+Migrated+") && object.data."+Migrated+" == object.data."+MigrateTo),
		Data: map[string]string{MigrateTo: p.version},
	}
}

// overview is a first dashboard. The condition Ready reports that it is shown.
func (p parts) overview() client.Object {
	dashboard := NewDashboard(p.namespace, OverviewName(p.name), "Overview of "+p.name)
	dashboard.SetAnnotations(p.meta("", contents, generator.AnnotationStatusHint, "has-ready-condition").Annotations)
	return dashboard
}

func (p parts) portal() client.Object {
	data := map[string]string{"settings": SettingsName(p.name)}
	if p.dashboards {
		data["overview"] = OverviewName(p.name)
	}
	return &corev1.ConfigMap{ObjectMeta: p.meta(PortalName(p.name), contents), Data: data}
}
