package inventory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// read finds out what is stored.
func (s *Objects) read(ctx context.Context) error {
	objects, err := s.options.list(ctx)
	if err != nil {
		return err
	}
	if len(objects) == 0 {
		if err := s.options.checkNone(ctx); err != nil {
			return err
		}
	}
	metas := map[int]metav1.ObjectMeta{}
	var chunks []found
	for _, object := range objects {
		chunk, err := s.options.open(object)
		if err != nil {
			return fmt.Errorf("%s %s cannot be used: %w", s.options.Kind, client.ObjectKeyFromObject(object), err)
		}
		metas[chunk.Chunk] = metaOf(object)
		chunks = append(chunks, chunk)
		s.generation = max(s.generation, chunk.Generation)
	}
	listed, err := s.options.complain(chunks)
	if err != nil {
		return err
	}
	s.metas, s.listed = metas, listed
	s.layout, s.stale = merge(chunks)
	s.known = true
	return nil
}

// checkNone refuses an inventory that is there, but cannot be found by its labels. It costs a new component a request; a root
// without its labels would cost an old one all its records.
func (o *Options) checkNone(ctx context.Context) error {
	object := o.object(metav1.ObjectMeta{}, nil)
	err := o.Reader.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.chunkName(root)}, object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if labels.SelectorFromSet(o.Labels).Matches(labels.Set(object.GetLabels())) {
		// It was made after the list.
		return apierrors.NewConflict(o.resource(), object.GetName(), errWritten)
	}
	return fmt.Errorf("%s has lost the labels by which it is found", o.describe(root))
}

// open reads the chunk that an object has.
func (o *Options) open(object client.Object) (found, error) {
	number, ok := o.chunkNumber(object.GetName())
	if !ok {
		return found{}, errors.New("it has the labels of the inventory, and not the name of a chunk")
	}
	head, records, err := decode(payloadOf(object))
	if err != nil {
		return found{}, err
	}
	if head.Owner != o.OwnerUID {
		return found{}, errors.New("it belongs to the inventory of another resource")
	}
	if head.Chunk != number {
		return found{}, fmt.Errorf("it has the content of %s", o.chunkName(head.Chunk))
	}
	if err := Validate(records); err != nil {
		return found{}, err
	}
	return found{header: head, records: records}, nil
}

// complain refuses chunks that are not all, and returns those that the root lists.
func (o *Options) complain(chunks []found) ([]int, error) {
	if len(chunks) == 0 {
		return nil, nil
	}
	there := map[int]bool{}
	var listed []int
	for _, chunk := range chunks {
		there[chunk.Chunk] = true
		if chunk.Chunk == root {
			listed = chunk.Chunks
		}
	}
	for _, chunk := range append([]int{root}, listed...) {
		if !there[chunk] {
			return nil, fmt.Errorf("%s is missing", o.describe(chunk))
		}
	}
	return listed, nil
}

// chunks are the numbers of the stored chunks, in order.
func (s *Objects) chunks() []int {
	return slices.Sorted(maps.Keys(s.metas))
}
