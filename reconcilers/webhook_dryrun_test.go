package reconcilers_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// dryRuns counts the requests to create something that are real, and those that are dry runs.
type dryRuns struct{ real, dry int }

func (d *dryRuns) config() reconcilers.Config {
	expect := expectWidget()
	expect.WithClientBuilder = func(b *fake.ClientBuilder) *fake.ClientBuilder {
		return b.WithInterceptorFuncs(interceptor.Funcs{Create: func(
			_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.CreateOption,
		) error {
			options := (&client.CreateOptions{}).ApplyOptions(opts)
			if len(options.DryRun) > 0 {
				d.dry++
			} else {
				d.real++
			}
			return nil
		}})
	}
	return expect.Config()
}

func TestAdmissionWebhookAdapterDryRun(t *testing.T) {
	for name, dry := range map[string]*bool{"unset": nil, "false": new(false), "true": new(true)} {
		t.Run(name, func(t *testing.T) {
			isDry := dry != nil && *dry
			counted := &dryRuns{}
			config := counted.config()
			recorder, eventRecorder := record.NewFakeRecorder(100), events.NewFakeRecorder(100)
			config.Recorder, config.EventRecorder = recorder, eventRecorder
			writes := func(config reconcilers.Config) {
				obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "made-"}}
				if err := config.Create(t.Context(), obj); err != nil {
					t.Error(err)
				}
				config.Recorder.Event(obj, corev1.EventTypeNormal, "Test", "event")
				config.Recorder.Eventf(obj, corev1.EventTypeNormal, "Test", "event")
				config.Recorder.AnnotatedEventf(obj, nil, corev1.EventTypeNormal, "Test", "event")
				config.EventRecorder.Eventf(obj, nil, corev1.EventTypeNormal, "Test", "Test", "event")
			}
			hook := gaugeTree(func(ctx context.Context, _ *gauge) error {
				if reconcilers.IsDryRun(ctx) != isDry {
					t.Errorf("IsDryRun is %t, want %t", !isDry, isDry)
				}
				inner := reconcilers.StashConfig(ctx, config)
				inner = reconcilers.StashOriginalConfig(inner, config)
				inner = reconcilers.StashAdditionalConfigs(inner, map[string]reconcilers.Config{"x": config})
				for _, ctx := range []context.Context{ctx, inner} {
					for _, config := range []reconcilers.Config{
						reconcilers.RetrieveConfigOrDie(ctx), reconcilers.RetrieveOriginalConfigOrDie(ctx), reconcilers.RetrieveAdditionalConfigs(ctx)["x"],
					} {
						writes(config)
					}
				}
				// What is dry already stays as it is.
				first := reconcilers.RetrieveConfigOrDie(ctx)
				if again := reconcilers.RetrieveConfigOrDie(reconcilers.StashConfig(ctx, first)); again != first {
					t.Error("the config changes when it is put on the context again, want the same")
				}
				return nil
			})
			hook.Config = config
			webhook, err := hook.BuildWithContext(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			req := gaugeRequest(admissionv1.Create)
			req.DryRun = dry
			ctx := webhook.WithContextFunc(t.Context(), nil)
			ctx = reconcilers.StashAdditionalConfigs(ctx, map[string]reconcilers.Config{"x": config})
			if resp := webhook.Handle(ctx, req); !resp.Allowed {
				t.Errorf("the answer is %v, want it allowed", resp.Result)
			}
			expected, expectedEvents := dryRuns{real: 6}, []int{18, 6}
			if isDry {
				expected, expectedEvents = dryRuns{dry: 6}, []int{0, 0}
			}
			if *counted != expected {
				t.Errorf("requests were %+v, expected %+v", *counted, expected)
			}
			if diff := cmp.Diff(expectedEvents, []int{len(recorder.Events), len(eventRecorder.Events)}); diff != "" {
				t.Errorf("the numbers of events differ (-expected, +actual):\n%s", diff)
			}
		})
	}
}

func TestAdmissionWebhookAdapterDryRunWithoutAConfig(t *testing.T) {
	hook := gaugeTree(func(ctx context.Context, _ *gauge) error {
		if config := reconcilers.RetrieveConfigOrDie(ctx); !config.IsEmpty() {
			t.Errorf("the config is %v, want an empty one", config)
		}
		return nil
	})
	req := gaugeRequest(admissionv1.Update)
	req.DryRun = new(true)
	req.OldObject = runtime.RawExtension{Raw: []byte("{}")}
	actual, _ := handle(t, hook, req)
	compareAnswers(t, allowed(), actual)
}
