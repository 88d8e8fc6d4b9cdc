package kit

// ErrorAnswer returns a fixture that fails with an HTTP status.
func ErrorAnswer(status int) Fixture {
	return Fixture{Response: Response{Status: status, Error: &ModelError{Message: Marked("the model refuses"), Type: "some_error"}}}
}

// FastAnswer returns a fixture that streams a text without pauses.
func FastAnswer(text string) Fixture { return Fixture{Response: Response{Content: text}} }

// SlowAnswer returns a fixture that streams about 40 chunks a second.
func SlowAnswer(text string) Fixture {
	return Fixture{Response: Response{Content: text}, ChunkSize: 8, Latency: 25}
}
