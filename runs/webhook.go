package runs

// Delivery starts TypeDelivery: it names an event and the webhook that is told of it. What the event says is
// where the event is kept.
type Delivery struct {
	Tenant  string `json:"tenant"`
	Event   string `json:"event"` // its id
	Webhook string `json:"webhook"`
}

// Delivered is what a receiver answered at last: a success, or 410, which says that it wants no more of it.
type Delivered struct {
	Status int `json:"status"`
}
