package functions_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"paidonce/shared/localaws"
)

// runbookBlock is a fenced block of commands.
type runbookBlock struct {
	section string // its heading, as links name it
	line    int    // of its first command
	code    string
}

var (
	fence   = regexp.MustCompile("^( *)```(.*)$")
	heading = regexp.MustCompile(`^#+ (.+)$`)
)

// runbookBlocks reads the blocks of bash in their order, without the indentation of the list that they are in.
func runbookBlocks(t *testing.T) (blocks []runbookBlock) {
	t.Helper()
	text, err := os.ReadFile("../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	section, indent, language := "", "", ""
	for i, line := range strings.Split(string(text), "\n") {
		switch found := fence.FindStringSubmatch(line); {
		case found != nil && language == "":
			indent, language = found[1], found[2]
			if language != "bash" {
				t.Errorf("docs/runbook.md:%d: a block of %q; want bash, and all of it run", i+1, language)
			}
			blocks = append(blocks, runbookBlock{section: section, line: i + 2})
		case found != nil:
			language = ""
		case language != "":
			last := &blocks[len(blocks)-1]
			last.code += strings.TrimPrefix(line, indent) + "\n"
		default:
			if title := heading.FindStringSubmatch(line); title != nil {
				section = strings.ReplaceAll(strings.ToLower(title[1]), " ", "-")
			}
		}
	}
	return blocks
}

// operator is a person's terminal: one bash in which the blocks run, one after the other.
type operator struct {
	dir    string // where it is: a checkout, as far as paidonce is concerned
	notes  string // where the wrappers leave theirs
	in     io.WriteCloser
	out    *bufio.Reader
	bash   *exec.Cmd
	blocks int
}

const (
	awsCLI = "../.tools/aws/bin/aws"
	// blockTime is how long a block may take at most.
	blockTime = 2 * time.Minute
)

// awsWrapper stands before the AWS CLI. It leads each call to the local stack, notes it, and notes those that fail, of which a
// pipe or a substitution would swallow the status. For the operations in the two lists the real CLI checks command, parameters and
// their types, and answers by itself; that the emulator cannot do those of the first is tried before.
const awsWrapper = `#!/usr/bin/env bash
operation="$1 $2"
echo "$operation" >>"$NOTES/calls"
call() { "$AWS_CLI" --endpoint-url "$AWS_ENDPOINT_URL" "$@"; }
if grep -qxF "$operation" "$NOTES/missing"; then
	if AWS_MAX_ATTEMPTS=1 call "$@" >/dev/null 2>&1; then
		echo "$operation: the emulator answers: take it off the list of stand-ins" | tee -a "$NOTES/failed" >&2
		exit 1
	fi
	set -- "$@" --generate-cli-skeleton output
elif grep -qxF "$operation" "$NOTES/destructive"; then
	set -- "$@" --generate-cli-skeleton output
fi
call "$@" || { status=$?; echo "aws $*: exit status $status" >>"$NOTES/failed"; exit $status; }
`

// paidonceWrapper leads paidonce to the local stack, as a checkout does, answers yes where a person would be asked, and does not spare
// the simulated gateway. That doctor finds something wrong is no failure of it.
const paidonceWrapper = `#!/usr/bin/env bash
unset PAIDONCE_STACK
case "$1 $2" in
"dlq redrive" | "events replay" | "refund "*) set -- "$@" --yes ;;
"reconcile --since") set -- "$@" --rate 100 ;;
esac
"$PAIDONCE" "$@" 2>"$NOTES/stderr"
status=$?
cat "$NOTES/stderr" >&2
if [[ $1 == doctor && $status == 1 ]] && grep -qE '^paidonce: [0-9]+ of [0-9]+ checks failed$' "$NOTES/stderr"; then status=0; fi
[[ $status == 0 ]] || echo "paidonce $*: exit status $status" >>"$NOTES/failed"
exit $status
`

// openTerminal builds paidonce and starts a bash that finds it, the AWS CLI and the local stack.
func openTerminal(t *testing.T, missing, destructive []string) *operator {
	t.Helper()
	aws, err := filepath.Abs(awsCLI)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(aws); err != nil {
		t.Fatalf("the AWS CLI is not installed: run `make tools` (%v)", err)
	}
	dir, bin, notes := t.TempDir(), t.TempDir(), t.TempDir()
	paidonce := filepath.Join(bin, "real-paidonce")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", paidonce, "../cmd/paidonce").CombinedOutput(); err != nil {
		t.Fatalf("build paidonce: %v\n%s", err, out)
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(bin, "aws"), awsWrapper)
	write(filepath.Join(bin, "paidonce"), paidonceWrapper)
	write(filepath.Join(dir, "template.yaml"), "") // by which a checkout is known
	write(filepath.Join(notes, "missing"), strings.Join(missing, "\n")+"\n")
	write(filepath.Join(notes, "destructive"), strings.Join(destructive, "\n")+"\n")
	if err := localaws.WriteInfo(dir, stack.Info); err != nil {
		t.Fatal(err)
	}

	o := &operator{dir: dir, notes: notes}
	o.bash = exec.Command("bash", "--noprofile", "--norc")
	o.bash.Dir = dir
	o.bash.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	o.bash.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "NOTES="+notes, "AWS_CLI="+aws, "PAIDONCE="+paidonce,
		"AWS_ENDPOINT_URL="+stack.AWSEndpoint, "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local",
		"AWS_CONFIG_FILE="+os.DevNull, "AWS_SHARED_CREDENTIALS_FILE="+os.DevNull)
	if o.in, err = o.bash.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	read, wrote, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	o.bash.Stdout, o.bash.Stderr, o.out = wrote, wrote, bufio.NewReader(read)
	if err := o.bash.Start(); err != nil {
		t.Fatal(err)
	}
	wrote.Close()
	t.Cleanup(func() {
		o.in.Close()
		o.bash.Wait() // what its exit status says, its blocks have said
		read.Close()
	})
	// A block's file has as many lines above it as in the runbook, so that bash names the runbook's lines.
	fmt.Fprintln(o.in, `set -eu -o pipefail; trap 'echo "docs/runbook.md: line $LINENO: status $?: $BASH_COMMAND" >&2' ERR`)
	return o
}

// run runs a block and returns what it printed. The test ends if any command of it failed.
func (o *operator) run(t *testing.T, b runbookBlock) string {
	t.Helper()
	o.blocks++
	file := filepath.Join(t.TempDir(), "runbook.md")
	if err := os.WriteFile(file, []byte(strings.Repeat("\n", b.line-1)+b.code), 0o600); err != nil {
		t.Fatal(err)
	}
	end := fmt.Sprintf("--- end of block %d ---\n", o.blocks)
	ended := time.AfterFunc(blockTime, func() { syscall.Kill(-o.bash.Process.Pid, syscall.SIGKILL) }) // with what it has started
	defer ended.Stop()
	fmt.Fprintf(o.in, "source '%s' </dev/null; printf '%%s' '%s'\n", file, end)
	var printed strings.Builder
	for {
		line, err := o.out.ReadString('\n')
		if before, found := strings.CutSuffix(line, end); found {
			printed.WriteString(before)
			break
		}
		printed.WriteString(line)
		if err != nil {
			t.Fatalf("docs/runbook.md:%d (#%s): the block failed:\n%s\nIt printed:\n%s%s", b.line, b.section, b.code, printed.String(), o.note(t, "failed"))
		}
	}
	if failed := o.note(t, "failed"); failed != "" {
		t.Fatalf("docs/runbook.md:%d (#%s): a command of the block failed: %s\nIt printed:\n%s", b.line, b.section, failed, printed.String())
	}
	return printed.String()
}

// note reads what the wrappers have noted since it was last read.
func (o *operator) note(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(o.notes, name)
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	os.Remove(path)
	return string(text)
}

// calls are the operations of the AWS CLI that were called since it was last asked.
func (o *operator) calls(t *testing.T) []string {
	t.Helper()
	return strings.Split(strings.TrimSpace(o.note(t, "calls")), "\n")
}
