package scenario

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/controller"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// The objects of the platform, by what they are to the scenario. They have a kind and a name, and nothing else.
func thePlatform() *v1alpha1.Platform { return demo.Named[v1alpha1.Platform](namespace, name) }

func theType() client.Object {
	return demo.Named[apiextensionsv1.CustomResourceDefinition]("", controller.DashboardCRDName)
}

func configMap(name string) client.Object { return demo.Named[corev1.ConfigMap](namespace, name) }
func settings() client.Object             { return configMap(controller.SettingsName(name)) }
func migration() client.Object            { return configMap(controller.MigrationName(name)) }
func information() client.Object          { return configMap(controller.InformationName(name)) }
func portal() client.Object               { return configMap(controller.PortalName(name)) }

func viewer() client.Object {
	return demo.Named[corev1.ServiceAccount](namespace, controller.ViewerName(name))
}

func viewerRole() client.Object {
	return demo.Named[rbacv1.ClusterRole]("", controller.ViewerRoleName(namespace, name))
}

func viewerBinding() client.Object {
	return demo.Named[rbacv1.ClusterRoleBinding]("", controller.ViewerRoleName(namespace, name))
}

func overview() client.Object {
	return controller.NewDashboard(namespace, controller.OverviewName(name), "")
}

// sales is a dashboard that does not belong to the platform.
func sales() client.Object { return controller.NewDashboard(namespace, "sales", "Sales of this week") }

func (s *scenario) settingsSay(key, value string) demo.Condition {
	return func(ctx context.Context) error {
		var found corev1.ConfigMap
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(settings()), &found); err != nil {
			return err
		}
		if found.Data[key] != value {
			return fmt.Errorf("the %s in the settings is %q, not %q", key, found.Data[key], value)
		}
		return nil
	}
}

// reports holds when the condition was observed at the current generation, is as given, and its message has all of
// these parts. A check can show the message then, see message.
func (s *scenario) reports(
	condition string, status metav1.ConditionStatus, reason string, parts ...string,
) demo.Condition {
	return func(ctx context.Context) error {
		platform := thePlatform()
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(platform), platform); err != nil {
			return err
		}
		c := platform.Status.GetCondition(condition)
		switch {
		case c == nil:
			return fmt.Errorf("there is no condition %s", condition)
		case c.ObservedGeneration != platform.Generation:
			return fmt.Errorf("%s was observed at generation %d of %d",
				condition, c.ObservedGeneration, platform.Generation)
		}
		s.said = fmt.Sprintf("%s=%s, %s: %s", c.Type, c.Status, c.Reason, c.Message)
		for _, part := range parts {
			if !strings.Contains(c.Message, part) {
				return fmt.Errorf("there is nothing of %q in %s", part, s.said)
			}
		}
		if c.Status != status || c.Reason != reason {
			return fmt.Errorf("the condition is %s", s.said)
		}
		return nil
	}
}

// message returns what the condition says that the check has read.
func (s *scenario) message() string { return s.said }

// isProcessing holds when the condition says that the platform is under way, and has all of these parts.
func (s *scenario) isProcessing(parts ...string) demo.Condition {
	return s.reports(v1alpha1.Installed, metav1.ConditionUnknown, "Processing", parts...)
}

// waitsForMigration holds when the condition says that the second of three waves waits for the migration, and nothing
// else.
func (s *scenario) waitsForMigration(ctx context.Context) error {
	message := fmt.Sprintf("Wave 2 of 3: 0 of 1 ready, waiting for ConfigMap %s/%s: ready-when: is not true yet",
		namespace, controller.MigrationName(name))
	if err := s.isProcessing(message)(ctx); err != nil {
		return err
	}
	if !strings.HasSuffix(s.said, message) {
		return fmt.Errorf("the condition says more: %s", s.said)
	}
	return nil
}

// isReady holds when that release is there, with so many objects.
func (s *scenario) isReady(version string, objects int) demo.Condition {
	return demo.All(s.reports("Ready", metav1.ConditionTrue, "Ready"), func(ctx context.Context) error {
		platform := thePlatform()
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(platform), platform); err != nil {
			return err
		}
		status := platform.Status
		switch {
		case platform.Spec.Version != version:
			return fmt.Errorf("release %s is asked for", platform.Spec.Version)
		case status.State != apis.ComponentReady || status.AppliedGeneration != platform.Generation:
			return fmt.Errorf("it is %s, at generation %d of %d",
				status.State, status.AppliedGeneration, platform.Generation)
		case len(status.Inventory) != objects:
			return fmt.Errorf("there are records of %d objects, not %d", len(status.Inventory), objects)
		}
		return nil
	})
}
