package statusfield

// Losses is how many requests in a row did not find in a status what the request before had recorded there.
type Losses int

// MaxLosses is how many it takes until it is known that a status does not keep what is recorded.
const MaxLosses = 3

// Note counts a request, and returns how many there are now.
func (l *Losses) Note(lost bool) Losses {
	if *l++; !lost {
		*l = 0
	}
	return *l
}
