package run

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/duck"
	"github.com/espalier-dev/espalier/testing/internal/apiresources"
	"github.com/espalier-dev/espalier/testing/internal/objects"
	"github.com/espalier-dev/espalier/testing/internal/recording"
)

// live returns the Server, with the given objects created there.
func (g Given) live(journal *recording.Journal) Server {
	_, problems := apiresources.NewMapper(g.GivenAPIResources)
	b := Server{Client: g.liveClient(journal), Reader: g.liveClient(nil), Problems: problems}
	b.Discovery = apiresources.NewDiscovery(g.GivenAPIResources)
	objs := append(objects.CopyAll(g.GivenObjects), objects.CopyAll(g.APIGivenObjects)...)
	if err := createGiven(context.Background(), b.Client.Client, objs); err != nil {
		b.Problems = append(b.Problems, err.Error())
	}
	b.Close = func(ctx context.Context) error { return g.deleteAll(ctx, b.Client) }
	return b
}

// liveClient returns a recording client of the Server.
func (g Given) liveClient(journal *recording.Journal) *recording.Client {
	inner := duck.NewDuckAwareClientWrapper(g.Server)
	r := recording.NewClient(inner, recording.Options{Add: AddGiven(inner, nil), Live: true, Journal: journal})
	g.addReactors(r)
	return r
}

// createGiven creates given objects on a real API server, with their status, and deletes those that are given as
// terminating. Objects that both readers of a config are given are created once.
func createGiven(ctx context.Context, server client.Client, objs []client.Object) error {
	for _, obj := range objs {
		if err := createOne(ctx, server, obj); err != nil {
			return fmt.Errorf("cannot create given %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
		}
	}
	return nil
}

func createOne(ctx context.Context, server client.Client, obj client.Object) error {
	created, err := Stored(obj, server.Scheme())
	if err != nil {
		return err
	}
	created.SetResourceVersion("")
	created.SetUID("")
	created.SetGeneration(0)
	created.SetCreationTimestamp(metav1.Time{})
	created.SetDeletionTimestamp(nil)
	created.SetManagedFields(nil)
	withStatus, err := asUnstructured(created, server)
	if err != nil {
		return err
	}
	if err := server.Create(ctx, created); err != nil {
		return client.IgnoreAlreadyExists(err)
	}
	if _, ok := withStatus.Object["status"]; ok {
		withStatus.SetResourceVersion(created.GetResourceVersion())
		if err := client.IgnoreNotFound(server.Status().Update(ctx, withStatus)); err != nil {
			return err
		}
	}
	if obj.GetDeletionTimestamp() != nil {
		return server.Delete(ctx, created)
	}
	return nil
}

func asUnstructured(obj client.Object, server client.Client) (*unstructured.Unstructured, error) {
	kind, err := server.GroupVersionKindFor(obj)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	if err := duck.Convert(obj, u); err != nil {
		return nil, err
	}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// deleteAll deletes the given objects and those that were created or applied through the client, even if they have
// finalizers.
func (g Given) deleteAll(ctx context.Context, r *recording.Client) error {
	objs := append(objects.CopyAll(g.GivenObjects), objects.CopyAll(g.APIGivenObjects)...)
	for _, action := range r.CreateActions {
		if obj, ok := action.GetObject().(client.Object); ok {
			objs = append(objs, obj)
		}
	}
	for _, action := range r.ApplyActions {
		objs = append(objs, targetObject(action))
	}
	for _, action := range r.PatchActions {
		if action.GetPatchType() == types.ApplyPatchType {
			objs = append(objs, targetObject(action))
		}
	}
	var errs []error
	for _, obj := range objs {
		if err := release(ctx, r.Client, obj); err != nil {
			errs = append(errs, fmt.Errorf("cannot delete %T %s: %w", obj, client.ObjectKeyFromObject(obj), err))
		}
	}
	return errors.Join(errs...)
}

// targetObject returns an object with the kind and name of the one that an action is about.
func targetObject(action clientgotesting.Action) client.Object {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(action.GetResource().GroupVersion().WithKind(action.GetResource().Resource))
	obj.SetNamespace(action.GetNamespace())
	obj.SetName(recording.NameOf(action))
	return obj
}

func release(ctx context.Context, server client.Client, obj client.Object) error {
	err := server.Delete(ctx, obj, client.GracePeriodSeconds(0))
	if apierrors.IsNotFound(err) || obj.GetName() == "" {
		return nil
	}
	if err != nil {
		return err
	}
	free := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	return client.IgnoreNotFound(server.Patch(ctx, obj, free))
}
