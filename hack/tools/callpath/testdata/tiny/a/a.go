package a

import "example.test/tiny/b"

type Box[K comparable, V any] struct{ values map[K]V }

func (*Box[K, V]) Walk() { b.One(); helper(); b.Two() }
