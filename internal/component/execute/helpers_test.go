package execute_test

import (
	"k8s.io/apimachinery/pkg/api/equality"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
)

func equal(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }

func isConflict(err error) bool { return apierrs.IsConflict(err) }
