package plan

import "strings"

// String lists what is to be done next and the obstacles, line by line. Tests compare it and show it.
func (p Plan) String() string {
	var b strings.Builder
	p.Next.write(&b)
	p.writeObstacles(&b)
	if b.Len() == 0 {
		return p.message(namedObstacles) + "\n"
	}
	return b.String()
}
