package reconcilers_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const secretValue, secretOld = "hunter2-new", "hunter2-old"

// leaks checks a text for the values, plain and as they travel.
func leaks(text string) bool {
	for _, value := range []string{secretValue, secretOld} {
		if strings.Contains(text, value) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(value))) {
			return true
		}
		// How Go prints bytes.
		if strings.Contains(text, strings.Trim(fmt.Sprint([]byte(value)), "[]")) || strings.Contains(text, fmt.Sprintf("%x", value)) {
			return true
		}
	}
	return false
}

// listener is a logger that records everything.
type listener struct{ heard []string }

func (l *listener) logger() logr.Logger {
	return funcr.New(func(prefix, args string) { l.heard = append(l.heard, prefix+" "+args) }, funcr.Options{Verbosity: 127, LogTimestamp: true})
}

// reconcile listens to a request, and to its error.
func (l *listener) reconcile(t *testing.T, root reconcile.Reconciler) error {
	t.Helper()
	_, err := root.Reconcile(logr.NewContext(t.Context(), l.logger()), widgetRequest)
	if err != nil {
		l.heard = append(l.heard, "error "+err.Error())
	}
	return err
}

// eventText is a recorder that keeps what is recorded.
type eventText struct {
	record.EventRecorder
	heard *listener
}

func (e eventText) Eventf(_ runtime.Object, _, reason, format string, args ...any) {
	e.heard.heard = append(e.heard.heard, "event "+reason+" "+fmt.Sprintf(format, args...))
}

type secretNode[T client.Object, L client.ObjectList] = reconcilers.ChildReconciler[*resources.Widget, T, L]

// secretStory creates, updates and deletes a Secret, with a failure before each, and returns all that was told.
func secretStory[T client.Object, L client.ObjectList](t *testing.T, secret func(value string) T, child *secretNode[T, L]) []string {
	t.Helper()
	heard := &listener{}
	expect := expectWidget(steadyWidget)
	failing := true
	expect.WithReactors = []rtesting.ReactionFunc{
		func(action rtesting.Action) (bool, runtime.Object, error) {
			if verb := action.GetVerb(); failing && action.GetResource().Resource == "Secret" && verb != "get" && verb != "list" {
				return true, nil, apierrs.NewInternalError(errBoom)
			}
			return false, nil, nil
		},
		assignUID,
	}
	config := expect.Config()
	config.Recorder = eventText{config.Recorder, heard}
	value := ""
	child.DesiredChild = func(context.Context, *resources.Widget) (T, error) {
		var none T
		if value == "" {
			return none, nil
		}
		return secret(value), nil
	}
	child.ReflectChildStatusOnParent = func(_ context.Context, w *resources.Widget, _ T, err error) {
		w.Status.AddField("child", fmt.Sprint(err))
	}
	root := &widgetRoot{Reconciler: child, ErrorCondition: widgetReconciled, Config: config}
	for _, value = range []string{secretOld, secretValue, ""} {
		failing = true
		if err := heard.reconcile(t, root); err == nil {
			t.Error("the error is nil, want that of the failure")
		}
		condition := conditionOf(t, config, widgetReconciled)
		heard.heard = append(heard.heard, "condition "+condition.Message)
		failing = false
		for range 2 {
			if err := heard.reconcile(t, root); err != nil {
				t.Errorf("with %q: %v", value, err)
			}
		}
	}
	status := &resources.Widget{}
	if err := config.Get(t.Context(), widgetKey, status); err != nil {
		t.Fatal(err)
	}
	return append(heard.heard, fmt.Sprintf("status %v", status.Status))
}

func typedSecret(value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: widgetKey.Namespace, Name: widgetKey.Name,
			// What kubectl apply leaves on an object.
			Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: `{"data":{"password":"` + value + `"}}`},
		},
		Data:       map[string][]byte{"password": []byte(value)},
		StringData: map[string]string{"token": value},
	}
}

func untypedSecret(value string) *unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typedSecret(value))
	if err != nil {
		panic(err)
	}
	content["apiVersion"], content["kind"] = "v1", "Secret"
	return &unstructured.Unstructured{Object: content}
}

func mergeSecret(current, desired *corev1.Secret) {
	current.Annotations, current.Data, current.StringData = desired.Annotations, desired.Data, desired.StringData
}

func mergeUntypedSecret(current, desired *unstructured.Unstructured) {
	current.SetAnnotations(desired.GetAnnotations())
	current.Object["data"], current.Object["stringData"] = desired.Object["data"], desired.Object["stringData"]
}

func TestL9SecretsAreNotTold(t *testing.T) {
	check := func(t *testing.T, told []string) {
		t.Helper()
		for _, words := range []string{
			"creating resource", "updating resource", "deleted",
			"event Created", "event Updated", "event Deleted", "error ",
		} {
			if !slices.ContainsFunc(told, func(line string) bool { return strings.Contains(line, words) }) {
				t.Errorf("the lines do not have %q, want one that does", words)
			}
		}
		for _, line := range told {
			if leaks(line) {
				t.Errorf("a secret was told, want it hidden: %s", line)
			}
		}
	}
	t.Run("typed", func(t *testing.T) {
		check(t, secretStory(t, typedSecret, &secretNode[*corev1.Secret, *corev1.SecretList]{MergeBeforeUpdate: mergeSecret}))
	})
	t.Run("unstructured", func(t *testing.T) {
		child := &secretNode[*unstructured.Unstructured, *unstructured.UnstructuredList]{MergeBeforeUpdate: mergeUntypedSecret}
		child.ChildType = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret"}}
		child.ChildListType = &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "SecretList"}}
		check(t, secretStory(t, untypedSecret, child))
	})
	// An author who thinks only of what is in the way of reading does not give the values away.
	t.Run("sanitised by the author", func(t *testing.T) {
		check(t, secretStory(t, typedSecret, &secretNode[*corev1.Secret, *corev1.SecretList]{
			MergeBeforeUpdate: mergeSecret,
			Sanitize: func(secret *corev1.Secret) any {
				secret.ManagedFields = nil
				return secret
			},
		}))
	})
	t.Run("sanitised to the values", func(t *testing.T) {
		check(t, secretStory(t, typedSecret, &secretNode[*corev1.Secret, *corev1.SecretList]{
			MergeBeforeUpdate: mergeSecret,
			Sanitize:          func(secret *corev1.Secret) any { return secret.Data },
		}))
	})
}

// Sanitize gets a copy, and what it returns is what is logged.
func TestSanitize(t *testing.T) {
	heard := &listener{}
	manager := &configMaps{
		MergeBeforeUpdate: mergeConfigMap,
		Sanitize: func(child *corev1.ConfigMap) any {
			child.Data["color"] = "painted over"
			return child.Data
		},
	}
	expect := expectWidget()
	desired := configMap.Object()
	ctx := logr.NewContext(testContext(t, expect.Config()), heard.logger())
	if _, err := manager.Manage(ctx, widget.Object(), nil, desired); err != nil {
		t.Fatal(err)
	}
	if desired.Data["color"] != "blue" {
		t.Errorf("Sanitize changed the color to %s, want blue", desired.Data["color"])
	}
	told := strings.Join(heard.heard, "\n")
	if !strings.Contains(told, "painted over") || strings.Contains(told, "blue") {
		t.Errorf("the log is %s, want the sanitized object and not its color blue", told)
	}
}

// What is not read is not made.
func TestNothingIsPreparedForASilentLogger(t *testing.T) {
	manager := &configMaps{
		MergeBeforeUpdate: mergeConfigMap,
		Sanitize: func(*corev1.ConfigMap) any {
			t.Error("an object was prepared for logging, want none to be")
			return nil
		},
	}
	red := givenConfigMap.With(func(c *corev1.ConfigMap) { c.Data = nil; c.ResourceVersion = "999" })
	ctx := logr.NewContext(testContext(t, expectWidget(red).Config()), logr.Discard())
	if _, err := manager.Manage(ctx, widget.Object(), red.Object(), configMap.Object()); err != nil {
		t.Fatal(err)
	}
	if _, err := manager.Manage(ctx, widget.Object(), red.With(func(c *corev1.ConfigMap) { c.ResourceVersion = "1000" }).Object(), nil); err != nil {
		t.Fatal(err)
	}
}
