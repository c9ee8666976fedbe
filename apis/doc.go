// Package apis contains types for the status of a resource: the observed generation, conditions, and sets of conditions
// that one condition sums up.
//
// A resource embeds [Status] in its own status and declares a [ConditionSet] once. During a request, each node marks
// its own condition, and the set keeps the summary up to date:
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
