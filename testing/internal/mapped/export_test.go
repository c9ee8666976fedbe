package mapped

// Suffix ends the names of what the row has on the API server.
func (s *Server) Suffix() string { return s.suffix }
