// Package write writes one object. The object managers of package reconcilers and the engine of components share it:
// they decide what is written and when, and this package makes the request.
//
// # What it promises
//
//  1. A write means the very object that was read. It has the UID of that object, and its resource version where the
//     caller asks for that, see [Version]. The API server refuses it for another object of the same name.
//  2. A refusal because the object is not what it was is a conflict, in whatever words the API server says so.
//  3. What an owner wrote by creates and updates before is removed if its next apply does not have it: [Writer.Migrate]
//     makes it part of what was applied.
//  4. What the API server assigned once stays: neither a migration nor a replacement takes it away, because the API
//     server would refuse that.
//  5. Fields that other managers own are named by manager and path, in a text that is the same each time, see
//     [FieldConflicts].
//
// # What is left to its callers
//
// Each function makes one request, but for an apply that leaves fields to others. It tries nothing again, reads
// nothing, records no event, logs nothing and remembers nothing. Creates and updates of complete objects are methods of
// the client. Whose an object is says package ownership; whether it may be written, the caller decides before.
package write
