package reconcilers

// AggregateResults makes one result of several:
//
//   - no result, or only empty ones, is the empty result;
//   - the shortest of the delays that are set, and not negative, wins;
//   - a request to requeue at once stays beside a delay;
//   - the highest of the priorities that are set wins.
func AggregateResults(results ...Result) Result {
	var aggregate Result
	for _, result := range results {
		aggregate = aggregateResult(aggregate, result)
	}
	return aggregate
}

func aggregateResult(a, b Result) Result {
	// A negative delay, which the queue ignores, must not hide one that counts.
	if b.RequeueAfter > 0 && (a.RequeueAfter <= 0 || b.RequeueAfter < a.RequeueAfter) {
		a.RequeueAfter = b.RequeueAfter
	}
	if b.Priority != nil && (a.Priority == nil || *b.Priority > *a.Priority) {
		a.Priority = b.Priority
	}
	//lint:ignore SA1019 users still set it, and it must not be lost
	return withRequeue(a, a.Requeue || b.Requeue)
}

// withRequeue returns result with its request to come back at once, with back-off, set to requeue. It is deprecated in
// controller-runtime in favour of delays, but there is no other way to ask for the back-off of the queue without an error.
func withRequeue(result Result, requeue bool) Result {
	//lint:ignore SA1019 see above
	result.Requeue = requeue
	return result
}
