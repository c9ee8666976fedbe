package apis_test

import (
	"context"
	"fmt"
	"time"

	"github.com/espalier-dev/espalier/apis"
	rtime "github.com/espalier-dev/espalier/time"
)

// Two parts of a resource are summed up in its condition Ready.
func ExampleConditionSet() {
	parts := apis.NewLivingConditionSet("NamespaceReady", "QuotaReady")
	status := &apis.Status{}

	ctx := rtime.StashNow(context.Background(), time.Date(2025, 2, 3, 4, 5, 6, 0, time.UTC))
	m := parts.ManageWithContext(ctx, status)
	show := func() {
		ready := status.GetCondition(apis.ConditionReady)
		fmt.Printf("%s: %s (%s)\n", ready.Type, ready.Status, ready.Reason)
	}

	m.InitializeConditions()
	show()
	m.MarkTrue("NamespaceReady", "Created", "")
	m.MarkFalse("QuotaReady", "Forbidden", "quota %q is refused", "compute")
	show()
	m.MarkTrue("QuotaReady", "Created", "")
	show()
	// Output:
	// Ready: Unknown (Initializing)
	// Ready: False (Forbidden)
	// Ready: True (Ready)
}

// Conditions record the generation that they were observed at.
func ExampleStashGeneration() {
	parts := apis.NewLivingConditionSet("QuotaReady")
	status := &apis.Status{}

	ctx := apis.StashGeneration(context.Background(), 7)
	parts.ManageWithContext(ctx, status).MarkTrue("QuotaReady", "Created", "")
	for _, c := range status.Conditions {
		fmt.Println(c.Type, c.Status, c.ObservedGeneration)
	}
	// Output:
	// QuotaReady True 7
	// Ready True 7
}
