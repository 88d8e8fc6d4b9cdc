package config

// clientSecretOf returns the reader of the client secret; nil = the environment has none.
func clientSecretOf(env environment) func() (string, error) {
	if env.get(clientSecretName) == "" {
		return nil
	}
	return func() (string, error) { return env.find(clientSecretName) }
}
