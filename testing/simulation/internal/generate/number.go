package generate

import "math"

// decoded returns a number as an unstructured object has it: one without a fraction is an integer there.
func decoded(number float64) any {
	if number == math.Trunc(number) && math.Abs(number) < 1<<53 {
		return int64(number)
	}
	return number
}

// bounds returns the smallest and the largest number, in steps.
func (n *node) bounds(step float64) (low, high float64) {
	low, high = math.Inf(-1), math.Inf(1)
	if v := n.values.Minimum; v != nil {
		low = math.Ceil(*v / step)
		if n.values.ExclusiveMinimum && low*step == *v {
			low++
		}
	}
	if v := n.values.Maximum; v != nil {
		high = math.Floor(*v / step)
		if n.values.ExclusiveMaximum && high*step == *v {
			high--
		}
	}
	switch n.values.Format {
	case "int32":
		return max(low, math.Ceil(math.MinInt32/step)), min(high, math.Floor(math.MaxInt32/step))
	default:
		return low, high
	}
}

// steps draws a multiple of a step. Without bounds it is small: a number of replicas is as large as it may be only if
// the schema says how large that is.
func (d *drawer) steps(n *node, step float64) float64 {
	low, high := n.bounds(step)
	if len(n.numbers) > 0 && d.r.IntN(3) == 0 {
		// Rules compare with constants, or with what is next to them.
		return math.Round(pick(d.r, n.numbers)/step) + float64(d.r.IntN(3)-1)
	}
	switch d.r.IntN(14) {
	case 0, 1:
		if n.values.Minimum != nil {
			return low
		}
		return max(low, min(high, float64(-d.r.IntN(2))))
	case 2, 3:
		if n.values.Maximum != nil {
			return high
		}
	case 4:
		if n.values.Maximum != nil {
			return max(low, high-1-float64(few(d.r, 2)))
		}
	case 5:
		if n.values.Minimum != nil {
			return min(low+float64(few(d.r, 3)), high)
		}
	case 6:
		return math.Floor(max(low, min(0, high))) + float64(d.r.IntN(101))
	}
	return min(max(low, min(0, high))+float64(few(d.r, 3)), high)
}

func (d *drawer) integer(n *node) int64 {
	step := 1.0
	if n.values.MultipleOf != nil {
		step = math.Ceil(*n.values.MultipleOf)
	}
	number := d.steps(n, step) * step
	if number >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(number)
}

func (d *drawer) decimal(n *node) any { return decoded(d.fraction(n)) }

func (d *drawer) fraction(n *node) float64 {
	if n.values.MultipleOf != nil {
		return d.steps(n, *n.values.MultipleOf) * *n.values.MultipleOf
	}
	switch low, high := n.values.Minimum, n.values.Maximum; {
	case low != nil && !n.values.ExclusiveMinimum && d.r.IntN(8) == 0:
		return *low
	case high != nil && !n.values.ExclusiveMaximum && d.r.IntN(8) == 0:
		return *high
	case low != nil && high != nil && *high-*low < 4:
		return *low + (*high-*low)*float64(1+d.r.IntN(15))/16
	}
	return d.steps(n, 0.5) * 0.5
}
