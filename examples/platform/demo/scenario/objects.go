package scenario

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/controller"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// The objects of the scenario have a kind and a name, and nothing else. Nobody changes them.
var (
	platform      = demo.Named[v1alpha1.Platform](namespace, name)
	dashboardType = demo.Named[apiextensionsv1.CustomResourceDefinition]("", controller.DashboardCRDName)
	viewer        = demo.Named[corev1.ServiceAccount](namespace, controller.ViewerName(name))
	viewerRole    = demo.Named[rbacv1.ClusterRole]("", controller.ViewerRoleName(namespace, name))
	viewerBinding = demo.Named[rbacv1.ClusterRoleBinding]("", controller.ViewerRoleName(namespace, name))
	settings      = configMap(controller.SettingsName(name))
	migration     = configMap(controller.MigrationName(name))
	overview      = controller.NewDashboard(namespace, controller.OverviewName(name), "")
	portal        = configMap(controller.PortalName(name))
	information   = configMap(controller.InformationName(name))

	index  = configMap(controller.IndexName(name))
	engine = demo.Named[appsv1.Deployment](namespace, controller.SearchName(name))
	// telemetry is in the way of the search at first: it belongs to somebody else.
	telemetry = configMap(controller.TelemetryName(name))

	// sales is a dashboard that does not belong to the platform, and inUse what a condition says of it.
	sales = controller.NewDashboard(namespace, "sales", "Sales of this week")
	inUse = fmt.Sprintf("%s: in use by Dashboard %s/%s", controller.DashboardCRDName, namespace, sales.GetName())
)

func configMap(name string) *corev1.ConfigMap { return demo.Named[corev1.ConfigMap](namespace, name) }

// partsAnd returns the objects of release 1.1 when it is installed, and others.
func partsAnd(others ...client.Object) []client.Object {
	return append([]client.Object{
		dashboardType, viewer, viewerRole, viewerBinding, settings, overview, information,
	}, others...)
}

// platformOf returns a platform that asks for a release.
func platformOf(version string) *v1alpha1.Platform {
	ordered := platform.DeepCopy()
	ordered.Spec.Version = version
	return ordered
}

func (s *scenario) orders(version string) demo.Action {
	return s.Patches(platform, fmt.Sprintf(`{"spec":{"version":%q}}`, version))
}

// migratesTo does what a Job would do, as soon as there is a migration.
func (s *scenario) migratesTo(version string) demo.Action {
	migrated := s.Patches(migration, fmt.Sprintf(`{"data":{%q:%q}}`, controller.Migrated, version))
	return s.Until(demo.Condition(migrated))
}

// showsOverview does what an operator of dashboards would do, as soon as there is the first one.
func (s *scenario) showsOverview() demo.Action {
	shown := s.PatchesStatus(overview, `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
	return s.Until(demo.Condition(shown))
}

// isProcessing holds when the condition says that the platform is under way, and has all of these parts.
func (s *scenario) isProcessing(parts ...string) demo.Condition {
	return s.Reports(platform, v1alpha1.Installed, metav1.ConditionUnknown, "Processing", parts...)
}

// waitsForMigration holds when the second of three waves waits for the migration, and for nothing else.
func (s *scenario) waitsForMigration() demo.Condition {
	message := fmt.Sprintf("Wave 2 of 3: 0 of 1 ready, waiting for ConfigMap %s/%s: ready-when: is not true yet",
		namespace, migration.Name)
	return demo.All(s.isProcessing(message),
		s.Has(platform, `{.status.conditions[?(@.type=="Installed")].message}`, message))
}

// hasRecords holds when the status has records of so many objects.
func (s *scenario) hasRecords(objects int) demo.Condition {
	return demo.Finds(s.Fixture, platform, func(found *v1alpha1.Platform) error {
		if n := len(found.Status.Inventory); n != objects {
			return fmt.Errorf("there are records of %d objects, not %d", n, objects)
		}
		return nil
	})
}

// searchIs holds when the condition of the search is as given.
func (s *scenario) searchIs(status metav1.ConditionStatus, reason string, parts ...string) demo.Condition {
	return s.Reports(platform, v1alpha1.SearchReady, status, reason, parts...)
}

// engineRuns does what the controller of Deployments does once the Pods are ready.
func (s *scenario) engineRuns() demo.Action {
	return s.engineReports(`"replicas":2,"updatedReplicas":2,"readyReplicas":2,"availableReplicas":2`,
		`{"type":"Available","status":"True","reason":"MinimumReplicasAvailable","message":""}`,
		`{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable","message":""}`)
}

// engineReports writes counts and conditions into the status of the Deployment, for its current generation.
func (s *scenario) engineReports(counts string, conditions ...string) demo.Action {
	return func(ctx context.Context) error {
		found := &appsv1.Deployment{}
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(engine), found); err != nil {
			return err
		}
		return s.PatchesStatus(found, fmt.Sprintf(`{"status":{"observedGeneration":%d,%s,"conditions":[%s]}}`,
			found.Generation, counts, strings.Join(conditions, ",")))(ctx)
	}
}
