package replay_test

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
)

var bugs = map[string]bug{
	"lost create": {
		wrong: forWidget(func(ctx context.Context, p *process, _ *resources.Widget) error {
			if found, err := exists(ctx, p, "one"); found || err != nil {
				return err // Then the other is there, too. It is not.
			}
			if err := p.Create(ctx, configMap("one")); err != nil {
				return err
			}
			return p.Create(ctx, configMap("two"))
		}),
		right: forWidget(func(ctx context.Context, p *process, _ *resources.Widget) error {
			if err := p.ensure(ctx, "one"); err != nil {
				return err
			}
			return p.ensure(ctx, "two")
		}),
		found: `[DiesAfter("create ConfigMap ns/one")]
get Widget a · create ConfigMap one · † · get Widget a · rest
missing: ConfigMap ns/two`,
	},
	"double create": {
		wrong: forWidget(func(ctx context.Context, p *process, w *resources.Widget) error {
			if w.Status.Fields["child"] != "" {
				return nil
			}
			child := generated("child-")
			if err := p.Create(ctx, child); err != nil {
				return err
			}
			return p.note(ctx, w, "child", child.Name)
		}),
		right: forWidget(func(ctx context.Context, p *process, w *resources.Widget) error {
			if w.Status.Fields["child"] != "" {
				return nil
			}
			name, err := onlyChild(ctx, p, p.live)
			if err != nil {
				return err
			}
			return p.note(ctx, w, "child", name)
		}),
		found: `[DiesAfter("create ConfigMap ns/child-*")]
get Widget a · create ConfigMap child-* · † · get Widget a · create ConfigMap child-* ·
update Widget/status a · again · get Widget a · rest
left over: ConfigMap ns/child-*2
Widget ns/a: status.fields.child is "child-*2", not "child-*"`,
	},
	"decision on a stale read": {
		wrong: forWidget(func(ctx context.Context, p *process, _ *resources.Widget) error {
			_, err := onlyChild(ctx, p, p)
			return err
		}),
		right: forWidget(func(ctx context.Context, p *process, _ *resources.Widget) error {
			_, err := onlyChild(ctx, p, p.live)
			return err
		}),
		found: `[Stale("list ConfigMap ns", 2)]
get Widget a · create ConfigMap child-* · again · get Widget a · list ConfigMap ns (stale) ·
create ConfigMap child-* · again · get Widget a · rest
left over: ConfigMap ns/child-*2`,
	},
	"status as memory": {
		wrong: forWidget(func(ctx context.Context, p *process, w *resources.Widget) error {
			if w.Status.Fields["made"] != "" {
				return nil
			}
			if err := p.note(ctx, w, "made", "one"); err != nil {
				return err
			}
			return p.ensure(ctx, "one")
		}),
		right: forWidget(func(ctx context.Context, p *process, w *resources.Widget) error {
			if err := p.ensure(ctx, "one"); err != nil {
				return err
			}
			return p.note(ctx, w, "made", "one")
		}),
		found: `[DiesAfter("update Widget/status ns/a")]
get Widget a · update Widget/status a · † · get Widget a · rest
missing: ConfigMap ns/one`,
	},
	"create that must be the first": {
		wrong: forWidget(func(ctx context.Context, p *process, w *resources.Widget) error {
			if w.Status.Fields["made"] != "" {
				return nil
			}
			if err := p.Create(ctx, configMap("one")); err != nil {
				return err
			}
			return p.note(ctx, w, "made", "one")
		}),
		right: forWidget(func(ctx context.Context, p *process, w *resources.Widget) error {
			if w.Status.Fields["made"] != "" {
				return nil
			}
			if err := ignoreExists(p.Create(ctx, configMap("one"))); err != nil {
				return err
			}
			return p.note(ctx, w, "made", "one")
		}),
		found: `[DiesAfter("create ConfigMap ns/one")]
get Widget a · create ConfigMap one · † · 39 times: get Widget a · create ConfigMap one (AlreadyExists) · error
never comes to rest: request 40 ends with an error: configmaps "one" already exists`,
	},
	"swallowed error": {
		wrong: forWidget(func(ctx context.Context, p *process, _ *resources.Widget) error {
			_ = p.ensure(ctx, "one")
			return nil
		}),
		right: forWidget(func(ctx context.Context, p *process, _ *resources.Widget) error {
			return p.ensure(ctx, "one")
		}),
		found: `[Fails("get ConfigMap ns/one")]
get Widget a · get ConfigMap one (fails) · rest
missing: ConfigMap ns/one`,
	},
	"swallowed error before the observed generation": {
		wrong: forWidget(func(ctx context.Context, p *process, w *resources.Widget) error {
			_ = p.ensure(ctx, "one")
			return p.observe(ctx, w)
		}),
		right: forWidget(func(ctx context.Context, p *process, w *resources.Widget) error {
			if err := p.ensure(ctx, "one"); err != nil {
				return err
			}
			return p.observe(ctx, w)
		}),
		found: `[Fails("get ConfigMap ns/one")]
get Widget a · get ConfigMap one (fails) · update Widget/status a · rest
missing: ConfigMap ns/one`,
	},
	"delete without a precondition": {
		given: []client.Object{colored("red")},
		wrong: forWidget(func(ctx context.Context, p *process, w *resources.Widget) error {
			return recolor(ctx, p, w, func(string) []client.DeleteOption { return nil })
		}),
		right: forWidget(func(ctx context.Context, p *process, w *resources.Widget) error {
			return recolor(ctx, p, w, func(uid string) []client.DeleteOption {
				return []client.DeleteOption{client.Preconditions{UID: ptr.To(types.UID(uid))}}
			})
		}),
		found: `[LosesAnswer("delete ConfigMap ns/one")]
get Widget a · delete ConfigMap one (answer lost) · error · get Widget a · create ConfigMap one ·
delete ConfigMap one · again · get Widget a · create ConfigMap one · again · get Widget a · rest
created twice: ConfigMap ns/one
deleted twice: ConfigMap ns/one`,
	},
	"overwritten change of somebody else": {
		given: []client.Object{colored("red")},
		wrong: forWidget(func(ctx context.Context, p *process, w *resources.Widget) error {
			one := &corev1.ConfigMap{}
			if err := p.Get(ctx, client.ObjectKeyFromObject(colored("")), one); err != nil {
				return err
			}
			if one.Data["color"] == w.Spec.Fields["color"] {
				return nil
			}
			return p.Update(ctx, colored(w.Spec.Fields["color"]))
		}),
		right: forWidget(func(ctx context.Context, p *process, w *resources.Widget) error {
			one := &corev1.ConfigMap{}
			if err := p.Get(ctx, client.ObjectKeyFromObject(colored("")), one); err != nil {
				return err
			}
			if one.Data["color"] == w.Spec.Fields["color"] {
				return nil
			}
			one.Data = map[string]string{"color": w.Spec.Fields["color"]}
			return p.Update(ctx, one)
		}),
		found: `[Conflicts("update ConfigMap ns/one")]
get Widget a · update ConfigMap one (after a write by somebody else) · again · get Widget a · rest
overwrites what somebody else wrote: ConfigMap ns/one`,
	},
	"change of somebody else that a retry overwrites": {
		given: []client.Object{colored("red")},
		wrong: forWidget(annotates(func(one *corev1.ConfigMap, color string) {
			one.Annotations = map[string]string{"color": color}
		})),
		right: forWidget(annotates(func(one *corev1.ConfigMap, color string) {
			metav1.SetMetaDataAnnotation(&one.ObjectMeta, "color", color)
		})),
		found: `[Conflicts("update ConfigMap ns/one")]
get Widget a · update ConfigMap one (after a write by somebody else) (Conflict) · error · get Widget a ·
update ConfigMap one · again · get Widget a · rest
overwrites what somebody else wrote: ConfigMap ns/one`,
	},
	"leak on an early return": {
		wrong: forWidget(func(ctx context.Context, p *process, _ *resources.Widget) error {
			if found, err := exists(ctx, p, "one"); found || err != nil {
				return err
			}
			scratch := generated("scratch-")
			if err := p.Create(ctx, scratch); err != nil {
				return err
			}
			if err := ignoreExists(p.Create(ctx, configMap("one"))); err != nil {
				return err
			}
			return p.Delete(ctx, scratch)
		}),
		right: forWidget(func(ctx context.Context, p *process, _ *resources.Widget) error {
			found, err := exists(ctx, p.live, "one")
			if err != nil {
				return err
			}
			if !found {
				if err := ignoreExists(p.Create(ctx, configMap("scratch"))); err != nil {
					return err
				}
				if err := ignoreExists(p.Create(ctx, configMap("one"))); err != nil {
					return err
				}
			}
			if found, err := exists(ctx, p, "scratch"); !found {
				return err
			}
			return client.IgnoreNotFound(p.Delete(ctx, configMap("scratch")))
		}),
		found: `[DiesAfter("create ConfigMap ns/one")]
get Widget a · create ConfigMap scratch-* · create ConfigMap one · † · get Widget a · rest
left over: ConfigMap ns/scratch-*`,
	},
	"requests without an end": {
		wrong: forWidget(func(ctx context.Context, p *process, w *resources.Widget) error {
			if err := p.ensure(ctx, "one"); err != nil {
				return p.note(ctx, w, "error", err.Error())
			}
			if w.Status.Fields["error"] != "" {
				return p.note(ctx, w, "attempts", w.Status.Fields["attempts"]+"x")
			}
			return nil
		}),
		right: forWidget(func(ctx context.Context, p *process, w *resources.Widget) error {
			if err := p.ensure(ctx, "one"); err != nil {
				return errors.Join(err, p.note(ctx, w, "error", err.Error()))
			}
			if w.Status.Fields["error"] != "" {
				delete(w.Status.Fields, "error")
				return p.Status().Update(ctx, w)
			}
			return nil
		}),
		found: `[LosesAnswer("create ConfigMap ns/one")]
get Widget a · create ConfigMap one (answer lost) · update Widget/status a · again · 39 times: get Widget a ·
update Widget/status a · again
never comes to rest: request 40 ends with a change`,
	},
	"loop without an end": {
		wrong: forWidget(func(ctx context.Context, p *process, _ *resources.Widget) error {
			for ignoreExists(p.Create(ctx, configMap("one"))) != nil {
			}
			return nil
		}),
		right: forWidget(func(ctx context.Context, p *process, _ *resources.Widget) error {
			for ignoreExists(p.Create(ctx, configMap("one"))) != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
			}
			return nil
		}),
		found: `[DiesAfter("create ConfigMap ns/one")]
get Widget a · create ConfigMap one · †
never comes to rest: request 1 ends with an error: it does not return: after more than 10000 calls, the last is "create ConfigMap ns/one"`,
	},
	"foreign object": {
		given: []client.Object{colored("red")},
		wrong: forWidget(func(ctx context.Context, p *process, _ *resources.Widget) error {
			if err := p.ensure(ctx, "two"); err != nil {
				return errors.Join(err, p.Patch(ctx, colored(""), mergePatch(`{"metadata":{"labels":{"failed":"true"}}}`)))
			}
			return nil
		}),
		right: forWidget(func(ctx context.Context, p *process, _ *resources.Widget) error {
			return p.ensure(ctx, "two")
		}),
		found: `[LosesAnswer("create ConfigMap ns/two")]
get Widget a · create ConfigMap two (answer lost) · patch ConfigMap one · error · get Widget a · rest
ConfigMap ns/one: metadata.labels is {"failed":"true"}, not absent
touched although foreign: ConfigMap ns/one`,
	},
	"memory of an error": {
		wrong: forWidget(func(ctx context.Context, p *process, _ *resources.Widget) error {
			if p.memory["failed"] != "" {
				if _, err := exists(ctx, p.live, "one"); err != nil {
					return err
				}
			}
			err := p.ensure(ctx, "one")
			if err != nil {
				p.memory["failed"] = "yes"
			}
			return err
		}),
		right: forWidget(func(ctx context.Context, p *process, _ *resources.Widget) error {
			return p.ensure(ctx, "one")
		}),
		found: `[LosesAnswer("create ConfigMap ns/one")]
get Widget a · create ConfigMap one (answer lost) · error · get Widget a · rest
at rest still: get ConfigMap ns/one (live)`,
	},
	"memory of an error that doubles what is read": {
		wrong: readAgain(func(p *process) { p.memory["failed"] = "yes" }),
		right: readAgain(func(*process) {}),
		found: `[Fails("get ConfigMap ns/one (live)")]
get Widget a · get ConfigMap one (live) (fails) · error · get Widget a · rest
at rest still: get ConfigMap ns/one (live)`,
	},
	"memory of an error, for a service": {
		wrong: rememberCall(func(p *process) { p.memory["failed"] = "yes" }),
		right: rememberCall(func(*process) {}),
		found: `[LosesAnswer("create ConfigMap ns/one")]
get ConfigMap one (NotFound) · create ConfigMap one (answer lost) · error · get ConfigMap one · GET /health · rest
at rest still: GET /health`,
	},
	"lost create in another namespace": {
		wrong: forWidget(func(ctx context.Context, p *process, _ *resources.Widget) error {
			err := p.Get(ctx, client.ObjectKeyFromObject(inDefault("one")), &corev1.ConfigMap{})
			if client.IgnoreNotFound(err) != nil || err == nil {
				return err
			}
			if err := p.Create(ctx, inDefault("one")); err != nil {
				return err
			}
			return p.Create(ctx, configMap("two"))
		}),
		right: forWidget(func(ctx context.Context, p *process, _ *resources.Widget) error {
			if err := ignoreExists(p.Create(ctx, inDefault("one"))); err != nil {
				return err
			}
			return ignoreExists(p.Create(ctx, configMap("two")))
		}),
		found: `[DiesAfter("create ConfigMap default/one")]
get Widget ns/a · create ConfigMap default/one · † · get Widget ns/a · rest
missing: ConfigMap ns/two`,
	},
	"call that is not idempotent": {
		wrong: charge(func(service *counter, _ *resources.Widget) { service.calls["order"]++ }),
		right: charge(func(service *counter, w *resources.Widget) { service.calls["order "+string(w.UID)] = 1 }),
		found: `[DiesAfter("POST /orders")]
get Widget a · POST /orders · † · get Widget a · POST /orders · update Widget/status a · again · get Widget a ·
rest
external: order is 2, not 1`,
	},
	"finalizer after the call": {
		wrong: finalized(callFirst, callFirst),
		right: finalized(finalizerFirst, callFirst),
		found: `[DiesAfter("PUT /address")]
get Widget a · PUT /address · † · get Widget a (NotFound) · rest
external: addresses is 1, not absent`,
	},
	"finalizer gone before the call": {
		wrong: finalized(finalizerFirst, finalizerFirst),
		right: finalized(finalizerFirst, callFirst),
		found: `[DiesAfter("update Widget ns/a", 2)]
get Widget a · update Widget a · PUT /address · again · get Widget a · update Widget a · † ·
get Widget a (NotFound) · rest
external: addresses is 1, not absent`,
	},
}
