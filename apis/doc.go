// Package apis holds what lives in the status of a resource: the observed generation, conditions, and the arithmetic
// that sums up several conditions in one.
//
// A resource embeds [Status] in its own status and declares a [ConditionSet] once. While reconciling, each node marks
// the condition it is responsible for, and the summary follows:
//
//	var tenantConditions = apis.NewLivingConditionSet("NamespaceReady", "QuotaReady")
//
//	func (s *TenantStatus) InitializeConditions(ctx context.Context) {
//		tenantConditions.ManageWithContext(ctx, s).InitializeConditions()
//	}
//
//	// in a node of the tree
//	tenantConditions.ManageWithContext(ctx, &tenant.Status).MarkTrue("QuotaReady", "Created", "")
//
// Time and generation come from the context of the request, so that all conditions of one request agree on both.
package apis
