//go:build e2e

// Package e2e is built with a tag.
package e2e

import (
	"reconciler.io/runtime/reconcilers"

	mailv1 "example.com/mailbox/api/v1"
	"example.com/mailbox/controllers"
)

// Root is what runs on a cluster.
var Root reconcilers.ResourceReconciler[*mailv1.Mailbox] = *controllers.MailboxReconciler(reconcilers.Config{})
