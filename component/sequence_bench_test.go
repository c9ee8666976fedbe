package component_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// bareLife makes the requests that a component needs, in the order that it needs them, and nothing else: with a bare
// client, without a queue, a generator or a plan. The metadata of the objects is watched meanwhile, and nothing is done
// with it.
//
// A component is created with its owner, which gets a finalizer. The names of all objects are recorded before the first
// of them is created, a wave is created before the next, and the UIDs are recorded before the component is ready. To
// go, the objects are deleted, then the record, then the finalizer.
type bareLife struct {
	*componentLife
	client.Client
	owner   *resources.Assembly
	records []*corev1.Secret
}

const (
	bareBuckets = 4
	// bareRecord is how many bytes a record of such an object takes in a Secret, compressed.
	bareRecord = 55
)

func (l *componentLife) bare(b *testing.B, c client.Client) {
	namespace := plane.Namespace(b)
	// That an API server serves the type for the first time is no part of it.
	first := resources.NewAssembly(namespace, "first")
	if err := c.Create(b.Context(), first); err != nil {
		b.Fatal(err)
	}
	if err := c.Delete(b.Context(), first); err != nil {
		b.Fatal(err)
	}
	stopWatch := l.watchMetadata(b)
	defer stopWatch()
	bare := &bareLife{componentLife: l, Client: c, owner: resources.NewAssembly(namespace, "bare")}
	l.bareRollout += l.timed(b, func() error { return bare.rollOut(b.Context(), namespace) })
	l.bareDeletion += l.timed(b, func() error { return bare.delete(b.Context(), namespace) })
}

// watchMetadata watches the metadata of all objects of components until the function that it returns is called.
func (l *componentLife) watchMetadata(b *testing.B) (stop func()) {
	watching, err := client.NewWithWatch(plane.Config(b), client.Options{})
	if err != nil {
		b.Fatal(err)
	}
	metadata := &metav1.PartialObjectMetadataList{}
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	w, err := watching.Watch(b.Context(), metadata, client.HasLabels{componentPrefix + "/" + generator.LabelOwnerID})
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range w.ResultChan() {
			continue
		}
	}()
	return func() {
		w.Stop()
		<-ended
	}
}

func (l *bareLife) rollOut(ctx context.Context, namespace string) error {
	if err := l.Create(ctx, l.owner); err != nil {
		return err
	}
	if err := l.setFinalizers(ctx, `["`+componentPrefix+`/bare"]`); err != nil {
		return err
	}
	if err := l.record(ctx, namespace); err != nil {
		return err
	}
	for wave := range l.waves {
		err := l.parallel(ctx, func(ctx context.Context, i int) error {
			if i%l.waves != wave {
				return nil
			}
			return l.Create(ctx, l.written(namespace, i), client.FieldOwner(componentPrefix))
		})
		if err != nil {
			return err
		}
	}
	return l.update(ctx, func(secret *corev1.Secret) []byte { return append(secret.Data["inventory"][1:], 0) })
}

func (l *bareLife) delete(ctx context.Context, namespace string) error {
	if err := l.Delete(ctx, l.owner); err != nil {
		return err
	}
	err := l.parallel(ctx, func(ctx context.Context, i int) error { return l.Delete(ctx, l.written(namespace, i)) })
	if err != nil {
		return err
	}
	if err := l.update(ctx, func(*corev1.Secret) []byte { return nil }); err != nil {
		return err
	}
	if err := l.each(func(secret *corev1.Secret) error { return l.Delete(ctx, secret) }); err != nil {
		return err
	}
	return l.setFinalizers(ctx, `null`)
}

func (l *bareLife) setFinalizers(ctx context.Context, finalizers string) error {
	patch := []byte(`{"metadata":{"finalizers":` + finalizers + `}}`)
	return l.Patch(ctx, l.owner, client.RawPatch("application/merge-patch+json", patch))
}

// record stores a record of each object, in the status of the owner or in Secrets.
func (l *bareLife) record(ctx context.Context, namespace string) error {
	if l.inventory == "" {
		for i := range l.objects {
			l.owner.Status.Inventory = append(l.owner.Status.Inventory, apis.InventoryRecord{
				Version: "v1", Kind: "ConfigMap", Namespace: namespace, Name: "part-" + strconv.Itoa(i),
			})
		}
		return l.Status().Update(ctx, l.owner)
	}
	random := rand.NewChaCha8([32]byte{})
	for i := range bareBuckets {
		content := make([]byte, l.objects*bareRecord/bareBuckets)
		_, _ = random.Read(content) // never fails
		l.records = append(l.records, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bare-" + strconv.Itoa(i)},
			Data:       map[string][]byte{"inventory": content},
		})
	}
	return l.each(func(secret *corev1.Secret) error { return l.Create(ctx, secret) })
}

// update stores other records. Those in a status are written once the component is ready.
func (l *bareLife) update(ctx context.Context, content func(secret *corev1.Secret) []byte) error {
	return l.each(func(secret *corev1.Secret) error {
		secret.Data = map[string][]byte{"inventory": content(secret)}
		return l.Update(ctx, secret)
	})
}

func (l *bareLife) each(f func(secret *corev1.Secret) error) error {
	var group errgroup.Group
	for _, secret := range l.records {
		group.Go(func() error { return f(secret) })
	}
	return group.Wait()
}
