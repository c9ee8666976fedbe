module example.test/tiny

go 1.26.0
