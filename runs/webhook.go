package runs

// Delivery starts webhook.deliver.v1: it names an event, which the inbox has, and the webhook that
// receives it.
type Delivery struct {
	Tenant  string `json:"tenant"`
	Event   string `json:"event"` // its id
	Webhook string `json:"webhook"`
}

// DeliveryResult is the receiver's final answer: a success, or 410 if it wants no more of these
// events.
type DeliveryResult struct {
	Status int `json:"status"`
}
