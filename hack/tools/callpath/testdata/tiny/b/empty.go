package b

// Nothing is called here.
const Nothing = 0
