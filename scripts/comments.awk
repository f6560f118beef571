# Finds comments that are wider than 100 columns, in Rust and C. A long piece of code in them is not broken.
#
# usage: LC_ALL=C awk -f scripts/comments.awk FILE...

{
    line = $0
    # A byte is a character here: what continues one in UTF-8 is taken out before it is counted.
    gsub(/[\200-\277]/, "", line)
    gsub(/\t/, "        ", line)
}

FILENAME ~ /\.rs$/ && line !~ /^ *\/\// { next }
FILENAME ~ /\.[ch]$/ && line !~ /^ *\/?\*/ { next }
length(line) > 100 && !(match(line, /`[^`]*`/) && RLENGTH > 60) {
    print FILENAME ":" FNR ": this comment is wider than 100 columns"
    failed = 1
}

END { exit failed }
