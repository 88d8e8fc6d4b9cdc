package cli

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/audit"
)

// verifyAudit returns "audit verify".
func (e *environment) verifyAudit() *cobra.Command {
	var f client.AuditFilter
	var known string
	cmd := &cobra.Command{
		Use: "verify [FILE]", Short: "Verify that no entry was changed, removed or inserted", Args: cobra.MaximumNArgs(1),
		Long: "Verifies the chain of digests of all entries, and prints the number and the digest of the last one. FILE is an export, - is standard input; without FILE the entries come from the API.\n\n" +
			"Keep what it prints in another place. With --head, the chain must contain that entry: this also reveals a chain that was replaced as a whole.",
		RunE: func(cmd *cobra.Command, args []string) error {
			check, err := newHeadCheck(known)
			if err != nil {
				return usage(err)
			}
			if len(args) == 1 {
				err = eachLine(cmd, args[0], check.next)
			} else {
				err = e.eachAuditEntry(cmd, f, check.next)
			}
			if err == nil {
				err = check.end()
			}
			if err != nil {
				return err
			}
			head := check.verifier.Head()
			if e.json {
				raw, err := jsonOf(head)
				if err != nil {
					return err
				}
				return document(cmd.OutOrStdout(), raw)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "The chain is complete: %d entries, from number %d. Its head is\n%d:%s\n", check.count, check.first, head.Number, head.Digest)
			return nil
		},
	}
	auditFlags(cmd, &f)
	cmd.Flags().StringVar(&known, "head", "", "an earlier head, NUMBER:DIGEST, that the chain must contain")
	return cmd
}

// headCheck verifies the entries of a chain, and looks for an earlier head.
type headCheck struct {
	verifier     audit.Verifier
	known        audit.Head
	hasKnown     bool
	first, count uint64
}

// newHeadCheck returns a check for an earlier head, NUMBER:DIGEST; "" = none.
func newHeadCheck(known string) (*headCheck, error) {
	if known == "" {
		return &headCheck{hasKnown: true}, nil
	}
	number, digest, _ := strings.Cut(known, ":")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil || len(digest) != 64 {
		return nil, errors.New("--head must be a head that \"perdure audit verify\" has printed, NUMBER:DIGEST")
	}
	return &headCheck{known: audit.Head{Number: n, Digest: digest}}, nil
}

// next verifies the next entry.
func (c *headCheck) next(raw []byte) error {
	if err := c.verifier.Verify(raw); err != nil {
		return err
	}
	head := c.verifier.Head()
	if c.count++; c.count == 1 {
		c.first = head.Number
	}
	if !c.hasKnown && head.Number == c.known.Number {
		if head.Digest != c.known.Digest {
			return fmt.Errorf("the chain was replaced: entry %d has the digest %s, not that of --head", head.Number, head.Digest)
		}
		c.hasKnown = true
	}
	return nil
}

// end checks that the chain has the earlier head.
func (c *headCheck) end() error {
	switch {
	case c.hasKnown:
		return nil
	case c.first > c.known.Number:
		return fmt.Errorf("the entry of --head, %d, has expired: the first entry is %d", c.known.Number, c.first)
	}
	return fmt.Errorf("the chain lacks entries: its last one is %d, before the entry of --head, %d", c.verifier.Head().Number, c.known.Number)
}

// maxAuditLine bounds an entry in a file, in bytes.
const maxAuditLine = 1 << 20

// eachLine calls do for each line of a file; "-" = standard input.
func eachLine(cmd *cobra.Command, name string, do func([]byte) error) error {
	in := cmd.InOrStdin()
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxAuditLine)
	for lines.Scan() {
		if err := do(lines.Bytes()); err != nil {
			return err
		}
	}
	return lines.Err()
}
