package server_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// TestErrorsTakeNoTime reports an error as the libraries do.
func TestErrorsTakeNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		utilruntime.HandleError(errors.New("an error"))
		if took := time.Since(begin); took > 0 {
			t.Errorf("an error took %v", took)
		}
	})
}
