package bucket

import "time"

// SetAnswerTime changes how long the cloud may be silent, before the bucket is used.
func (b *Bucket) SetAnswerTime(d time.Duration) { b.answerTime = d }
