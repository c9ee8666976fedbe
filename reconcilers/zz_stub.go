package reconcilers

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type Renaming string

const (
	ByKind     Renaming = "ByKind"
	RefuseName Renaming = "RefuseName"
)
const ReasonKindNotServed metav1.StatusReason = "KindNotServed"

func WatchOptional(ctx context.Context, bldr *Builder, obj client.Object) error {
	return WatchTracked(ctx, bldr, obj)
}
