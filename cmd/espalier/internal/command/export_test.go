package command

import "time"

// SetCompletionTime sets how long a shell waits for names.
func SetCompletionTime(d time.Duration) { completionTime = d }
