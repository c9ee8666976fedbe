package app

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/espalier-dev/espalier/reconcilers"
)

var mended = os.Getenv("MENDED") != ""

const finalizer = "example.com/app"

// sync is the code of a node. It gets the number of earlier requests to the same instance.
type sync func(ctx context.Context, c reconcilers.Config, app *App, earlier int) error

// node returns a node that works on apps that are not being deleted.
func node(do sync) reconcilers.SubReconciler[*App] {
	earlier := -1
	return &reconcilers.SyncReconciler[*App]{
		SyncDuringFinalization: true,
		Sync: func(ctx context.Context, app *App) error {
			earlier++
			return do(ctx, reconcilers.RetrieveConfigOrDie(ctx), app, earlier)
		},
	}
}

func child(app *App, name string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: name}}
	cm.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "example.com/v1", Kind: "App", Name: app.Name, UID: app.UID, Controller: new(true),
	}}
	return cm
}

// generated returns a child whose name the server makes.
func generated(app *App) *corev1.ConfigMap {
	cm := child(app, "")
	cm.GenerateName = app.Name + "-"
	return cm
}

func exists(ctx context.Context, c client.Reader, namespace, name string) (bool, error) {
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.ConfigMap{})
	return err == nil, client.IgnoreNotFound(err)
}

// ensure creates a child unless it is there, and reports whether it did.
func ensure(ctx context.Context, c reconcilers.Config, app *App, name string) (bool, error) {
	if there, err := exists(ctx, c, app.Namespace, name); there || err != nil {
		return false, err
	}
	return true, c.Create(ctx, child(app, name))
}

// bugs are nodes by what is wrong with them.
var bugs = map[string]sync{
	"lost create": func(ctx context.Context, c reconcilers.Config, app *App, _ int) error {
		created, err := ensure(ctx, c, app, "one")
		if err != nil || !created && !mended {
			return err
		}
		_, err = ensure(ctx, c, app, "two")
		return err
	},
	"double create": func(ctx context.Context, c reconcilers.Config, app *App, _ int) error {
		if app.Status.Child != "" {
			return nil
		}
		if mended {
			children := &corev1.ConfigMapList{}
			if err := c.APIReader.List(ctx, children, client.InNamespace(app.Namespace)); err != nil {
				return err
			}
			for _, child := range children.Items {
				if metav1.IsControlledBy(&child, app) {
					app.Status.Child = child.Name
					return nil
				}
			}
		}
		made := generated(app)
		if err := c.Create(ctx, made); err != nil {
			return err
		}
		app.Status.Child = made.Name
		return nil
	},
	"finalizer too late": func(ctx context.Context, c reconcilers.Config, app *App, _ int) error {
		guard := func() error {
			if controllerutil.ContainsFinalizer(app, finalizer) {
				return nil
			}
			old := app.DeepCopyObject().(*App)
			controllerutil.AddFinalizer(app, finalizer)
			return c.Patch(ctx, app, client.MergeFrom(old))
		}
		if mended {
			if err := guard(); err != nil {
				return err
			}
		}
		created, err := ensure(ctx, c, app, "one")
		if err != nil || !created {
			return err
		}
		return guard()
	},
	"status as memory": func(ctx context.Context, c reconcilers.Config, app *App, _ int) error {
		if app.Status.Phase == "Created" && !mended {
			return nil
		}
		app.Status.Phase = "Created"
		if err := c.Status().Update(ctx, app); err != nil {
			return err
		}
		_, err := ensure(ctx, c, app, "one")
		return err
	},
	"stale read": func(ctx context.Context, c reconcilers.Config, app *App, earlier int) error {
		if earlier > 0 && app.Status.Phase == "Created" {
			return nil
		}
		children := &corev1.ConfigMapList{}
		if err := c.List(ctx, children, client.InNamespace(app.Namespace)); err != nil {
			return err
		}
		if len(children.Items) < 2 {
			next := generated(app)
			if mended {
				next = child(app, "app-"+strconv.Itoa(len(children.Items)))
			}
			if err := c.Create(ctx, next); err != nil {
				return err
			}
			return reconcilers.ErrQuiet
		}
		app.Status.Phase = "Created"
		return nil
	},
	"external call twice": func(ctx context.Context, _ reconcilers.Config, app *App, _ int) error {
		if app.Status.Bucket != "" {
			return nil
		}
		key := ""
		if mended {
			key = app.Namespace + "-" + app.Name
		}
		id, err := makeBucket(ctx, key, true)
		app.Status.Bucket = id
		return err
	},
	"ignored status code": func(ctx context.Context, _ reconcilers.Config, app *App, _ int) error {
		if app.Status.Bucket != "" {
			return nil
		}
		id, err := makeBucket(ctx, app.Name, mended)
		app.Status.Bucket = id
		return err
	},
	"swallowed error": func(ctx context.Context, c reconcilers.Config, app *App, _ int) error {
		_, err := ensure(ctx, c, app, "one")
		if mended {
			return err
		}
		return nil
	},
	"lost answer": func(ctx context.Context, c reconcilers.Config, app *App, _ int) error {
		if app.Status.Phase != "" && !mended {
			return nil
		}
		switch err := c.Create(ctx, child(app, "one")); {
		case err == nil, mended && apierrors.IsAlreadyExists(err):
			app.Status.Phase = "Created"
			return nil
		case apierrors.IsAlreadyExists(err):
			app.Status.Phase = "Clash"
			return nil
		default:
			return err
		}
	},
	"leak": func(ctx context.Context, c reconcilers.Config, app *App, _ int) error {
		if app.DeletionTimestamp.IsZero() {
			return nil
		}
		remove := func() error {
			elsewhere := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: app.Name}}
			return client.IgnoreNotFound(c.Delete(ctx, elsewhere))
		}
		if mended {
			if err := remove(); err != nil {
				return err
			}
		}
		old := app.DeepCopyObject().(*App)
		if controllerutil.RemoveFinalizer(app, finalizer) {
			if err := c.Patch(ctx, app, client.MergeFrom(old)); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		return remove()
	},
	"endless loop": func(ctx context.Context, c reconcilers.Config, app *App, earlier int) error {
		created, err := ensure(ctx, c, app, "one")
		if err != nil || created || mended || earlier > 0 && app.Status.Phase == "" {
			return err
		}
		app.Status.Phase += "."
		return nil
	},
	"overwrite": func(ctx context.Context, c reconcilers.Config, app *App, _ int) error {
		one := &corev1.ConfigMap{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: app.Namespace, Name: "one"}, one); err != nil {
			return err
		}
		if one.Data["app"] == app.Name {
			return nil
		}
		if !mended {
			one.ResourceVersion = ""
		}
		one.Data = map[string]string{"app": app.Name}
		return c.Update(ctx, one)
	},
}

// makeBucket returns the id of a new bucket. It returns an error if the cloud says that there is none, if checked.
func makeBucket(ctx context.Context, key string, checked bool) (id string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://cloud/buckets", strings.NewReader(key))
	if err != nil {
		return "", err
	}
	response, err := cloudClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if checked && response.StatusCode != http.StatusOK {
		return "", errors.Join(err, errors.New(response.Status))
	}
	return string(text), err
}
