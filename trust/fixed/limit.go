package fixed

// Limit is a sum of parts that is limited to its largest one, or to another most.
type Limit struct{ Sum, Most Fixed }

// Add takes in a part.
func (l *Limit) Add(part Fixed) { l.Sum, l.Most = l.Sum+part, max(l.Most, part) }

// Of is what remains of a part when all of them are scaled down to the limit.
func (l *Limit) Of(part Fixed) Fixed {
	if l.Sum <= l.Most {
		return part
	}
	return part.Scaled(int64(l.Most), int64(l.Sum))
}
