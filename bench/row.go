package main

// row is one number of a report, with the name under which reports of two builds compare it.
type row struct {
	name  string
	value finding
}

// rows returns all numbers of a report, in the order of its tables. Those of a system are the medians of
// its repetitions.
func (r *report) rows() []row {
	var all []row
	for _, s := range systems {
		m := medians(r.Repetitions[s.name])
		for _, t := range table {
			if value, ok := m[t.measure]; ok {
				all = append(all, row{s.title + ": " + t.title, finding{Value: value}})
			}
		}
	}
	for _, c := range comparisons {
		for _, v := range r.Pipelines[c.name] {
			all = append(all, row{c.name + ": " + v.What, finding{Value: v.Perdure, Unit: v.Unit}})
		}
	}
	for _, s := range scales {
		for _, f := range r.Scales[s.name] {
			all = append(all, row{s.name + ": " + f.What, f})
		}
	}
	return all
}
