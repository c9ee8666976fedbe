package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/component/readiness"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// check says what is wrong with options, whatever the objects.
func (o *Options) check() error {
	errs := []error{
		oneOf("adoption policy", o.AdoptionPolicy, apis.AdoptNever, apis.AdoptIfUnowned, apis.AdoptAlways),
		oneOf("reconcile policy", o.ReconcilePolicy,
			apis.ReconcileOnObjectChange, apis.ReconcileOnObjectOrComponentChange, apis.ReconcileOnce),
		oneOf("update policy", o.UpdatePolicy,
			apis.UpdateApply, apis.UpdateApplyOverride, apis.UpdateReplace, apis.UpdateRecreate),
		oneOf("delete policy", o.DeletePolicy,
			apis.DeleteDelete, apis.DeleteOrphan, apis.DeleteOrphanOnApply, apis.DeleteOrphanOnDelete),
		oneOf("prune policy", o.PrunePolicy, apis.PruneBefore, apis.PruneWith, apis.PruneAfter),
	}
	if o.Namespaced == nil {
		errs = append(errs, errors.New("the scope of kinds cannot be told"))
	}
	return errors.Join(errs...)
}

func oneOf[P ~string](what string, policy P, allowed ...P) error {
	if policy == "" || slices.Contains(allowed, policy) {
		return nil
	}
	return fmt.Errorf("%s %q of the component is none of %q", what, policy, allowed)
}

// desired returns what is in force for an object with settings.
func desired(settings component.Settings, options *Options) plan.Desired {
	interval := options.ReapplyInterval
	if settings.ReapplyInterval != nil {
		interval = *settings.ReapplyInterval
	}
	return plan.Desired{
		AdoptionPolicy:  cmp.Or(settings.AdoptionPolicy, options.AdoptionPolicy, apis.AdoptIfUnowned),
		ReconcilePolicy: cmp.Or(settings.ReconcilePolicy, options.ReconcilePolicy, apis.ReconcileOnObjectChange),
		UpdatePolicy:    cmp.Or(settings.UpdatePolicy, options.UpdatePolicy, apis.UpdateApply),
		DeletePolicy:    cmp.Or(settings.DeletePolicy, options.DeletePolicy, apis.DeleteDelete),
		PrunePolicy:     cmp.Or(settings.PrunePolicy, options.PrunePolicy, apis.PruneWith),
		ApplyOrder:      settings.ApplyOrder,
		DeleteOrder:     settings.DeleteOrder,
		PurgeOrder:      settings.PurgeOrder,
		ReapplyInterval: max(interval, time.Duration(0)),

		IgnoreForeignInstances: settings.IgnoreForeignInstances,
	}
}

// checkReadyWhen refuses an expression that cannot be evaluated whatever the object: it would be written, and never be ready.
func checkReadyWhen(settings component.Settings) error {
	if err := readiness.Validate(settings); err != nil {
		// It names the annotation.
		return fmt.Errorf("annotation %w", err)
	}
	return nil
}

// checkPurge keeps what others live in, or are instances of, from being removed on the way.
func checkPurge(kind schema.GroupKind, settings component.Settings) error {
	if settings.PurgeOrder == nil || (kind != namespaceKind && kind != crdKind && kind != apiServiceKind) {
		return nil
	}
	return fmt.Errorf("an object of the kind %s cannot have a purge order", kind.Kind)
}
