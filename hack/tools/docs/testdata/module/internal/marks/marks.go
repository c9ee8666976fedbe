// Package marks has constants that package generator exports.
package marks

// Owner is in no group.
const Owner = "owner"
