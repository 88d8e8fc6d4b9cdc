package kit

func Fails(status int) Fixture {
	return Fixture{Response: Response{Status: status, Error: &ModelError{Message: Say("the model refuses"), Type: "some_error"}}}
}

// Answers is text that comes fast, pours is text that comes slowly: about 40 pieces a second.
func Answers(text string) Fixture { return Fixture{Response: Response{Content: text}} }

func Pours(text string) Fixture {
	return Fixture{Response: Response{Content: text}, ChunkSize: 8, Latency: 25}
}
