package replay_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/replay"
)

// The UID of a given object is the same in all runs, and may be a text that occurs elsewhere.
func TestAGivenUIDIsNotMasked(t *testing.T) {
	t.Parallel()
	for _, uid := range []types.UID{"", "1"} {
		owner := configMap("owner")
		owner.UID = uid
		got := differences(t, []client.Object{owner}, func(ctx context.Context, p *process, failed bool) error {
			of := &corev1.ConfigMap{}
			if failed {
				if err := p.user.Patch(ctx, configMap("owner"), mergePatch(`{"data":{"a":"b"}}`)); err != nil {
					return err
				}
			}
			if err := p.Get(ctx, client.ObjectKeyFromObject(owner), of); err != nil {
				return err
			}
			one := with("size", fmt.Sprintf("1%d", map[bool]int{false: 0, true: 1}[failed]))
			one.OwnerReferences = []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "ConfigMap", Name: of.Name, UID: of.UID},
			}
			return p.Create(ctx, one)
		}, func(object, _ string) bool { return object == "ConfigMap ns/owner" })
		if want := []string{`ConfigMap ns/one: data.size is "11", not "10"`}; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("UID %q: got %q, want %q", uid, got, want)
		}
	}
}

// A fault delays what follows, and so the times that the code writes.
func TestTimesInTextsAreNotCompared(t *testing.T) {
	t.Parallel()
	program := programOf(given(t, widget()), nil)
	program.Start = func(_ context.Context, w *replay.World) (replay.Instance, error) {
		p := &process{WithWatch: w.Client("")}
		return func(ctx context.Context) (reconcile.Result, error) {
			found, err := exists(ctx, p, "one")
			if err != nil && w.Now().Equal(begin) {
				return reconcile.Result{RequeueAfter: time.Hour}, nil
			}
			if found || err != nil {
				return reconcile.Result{}, err
			}
			one := with("message", "retry at "+w.Now().Format(time.RFC3339)+", please")
			one.Annotations = map[string]string{"restartedAt": w.Now().Format(time.RFC3339)}
			one.Data["renewTime"] = w.Now().Format(metav1.RFC3339Micro)
			return reconcile.Result{}, p.Create(ctx, one)
		}, nil
	}
	run(t, program, fault.Fault{Kind: fault.Fails, Path: "get ConfigMap ns/one"})
}

func TestATimeIsNotNoTime(t *testing.T) {
	t.Parallel()
	got := differences(t, nil, create(func(failed bool) client.Object {
		if failed {
			return with("at", "never")
		}
		return with("at", "2025-02-03T04:05:06Z")
	}), nil)
	if want := `[ConfigMap ns/one: data.at is "never", not "a time"]`; fmt.Sprint(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Names are generated in each cluster, and the same one may be given in two.
func TestTheSameGeneratedNameInTwoClusters(t *testing.T) {
	t.Parallel()
	for range 10 {
		program := programOf(given(t, widget()), func(ctx context.Context, p *process) error {
			done, err := exists(ctx, p, "done")
			if err != nil {
				p.memory["failed"] = "yes"
			}
			if done || err != nil {
				return err
			}
			for _, cluster := range []string{"", "remote"} {
				colors := []string{"red", "blue"}
				if p.memory["failed"] != "" && cluster != "" {
					colors = []string{"blue", "red"}
				}
				for _, color := range colors {
					child := generated("child-")
					child.Labels = map[string]string{"color": color}
					if err := p.world.Client(cluster).Create(ctx, child); err != nil {
						return err
					}
					of := with("child", child.Name+" has "+string(child.UID))
					of.Name = "of-" + color
					if err := p.world.Client(cluster).Create(ctx, of); err != nil {
						return err
					}
				}
			}
			return p.Create(ctx, configMap("done"))
		})
		program.Clusters["remote"] = replay.Cluster{Store: given(t, configMap("other"))}
		run(t, program, fault.Fault{Kind: fault.Fails, Path: "get ConfigMap ns/done"})
	}
}

// Code that writes an object each time owns what it writes, although nothing changes without a fault.
func TestWhatIsWrittenWithoutAChangeIsNotForeign(t *testing.T) {
	t.Parallel()
	one := configMap("one")
	one.Annotations = map[string]string{"example.com/mine": "yes"}
	program := programOf(given(t, widget(), one), func(ctx context.Context, p *process) error {
		live := &corev1.ConfigMap{}
		if err := p.Get(ctx, client.ObjectKeyFromObject(one), live); err != nil {
			return err
		}
		live.Annotations = map[string]string{"example.com/mine": "yes"}
		return p.Update(ctx, live)
	})
	struck := fault.Fault{Kind: fault.Conflicts, Path: "update ConfigMap ns/one"}
	overwritten := replay.Options{Ignore: func(_, path string) bool { return path == "overwritten" }}
	if f, err := replay.Run(t.Context(), program, []fault.Fault{struck}, overwritten); err != nil || f != nil {
		t.Errorf("the finding is %v (%v), want none", f, err)
	}
	if f, err := replay.Run(t.Context(), program, []fault.Fault{struck}, replay.Options{}); err != nil || f == nil {
		t.Errorf("the finding is %v (%v), want one since what somebody else wrote is lost", f, err)
	}
}
