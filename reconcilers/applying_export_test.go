package reconcilers

// NewApplyConflictError returns the conflicts that err is about, nil if it is about something else.
var NewApplyConflictError = newApplyConflictError
