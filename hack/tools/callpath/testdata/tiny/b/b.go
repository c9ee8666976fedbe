package b

func One() {}

func Two() { One() }
