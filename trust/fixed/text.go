package fixed

// UnmarshalText reads a decimal number as Parse does. Files in YAML write numbers that way.
func (a *Fixed) UnmarshalText(text []byte) (err error) {
	*a, err = Parse(string(text))
	return err
}
