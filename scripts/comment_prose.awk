# Counts habits of prose (CONTRIBUTING.md) in the comments of Rust and C files, by folder, and compares the
# counts with scripts/comment_prose.txt. A folder that is not named there may have none.
#
# usage: LC_ALL=C awk [-v show=FOLDER] -f scripts/comment_prose.awk scripts/comment_prose.txt FILE...
#        With show, prints each sentence that counts in the folder.

function found(what) {
    count[folder]++
    if (show == folder)
        print begin ": " what ": " sentence
}

# The sentences of a paragraph. A question may begin with Who or What.
function finish(   number, sentences, i) {
    gsub(/[.!?:;]\)?[*]* +/, "&\n", paragraph)
    number = split(paragraph, sentences, "\n")
    for (i = 1; i <= number; i++) {
        sentence = sentences[i]
        sub(/^[*(]+/, "", sentence)
        if (sentence ~ /^(Who|Whoever|Whom|Whose|What|Whatever) / && sentence !~ /\?[)*]* *$/)
            found("the subject is not a noun")
        if (sentence ~ /^Of [a-z]/)
            found("it begins with Of")
        if (sentence ~ /, for (it|they|he|she|there|these|those|this|nobody|who|what|one|no|then) /)
            found("write because")
        if (sentence ~ /[Ss]o (many|long|often)( |[.,;:)]|$)/)
            found("say the number")
        if (sentence ~ /([Ss]omebody|[Nn]obody|[Ee]verybody|[Ww]hoever)/)
            found("name the component")
    }
    paragraph = ""
}

FNR == NR {
    if ($0 !~ /^#/ && NF == 2)
        most[$2] = $1
    next
}

FNR == 1 {
    finish()
    split(FILENAME, part, "/")
    folder = part[1] == "crates" || part[1] == "schedulers" ? part[1] "/" part[2] : part[1]
    seen[folder]
    block = 0
}

{
    text = ""
    line = $0
    sub(/^[ \t]+/, "", line)
    if (FILENAME ~ /\.rs$/) {
        if (line ~ /^\/\/[\/!]? /)
            text = line
        sub(/^\/\/[\/!]? +/, "", text)
    } else {
        if (line ~ /^\/\*/)
            block = 1
        if (block || line ~ /^\/\/ /)
            text = line
        if (line ~ /\*\//)
            block = 0
        sub(/^(\/\*+|\/\/|\*+\/?)[ \t]*/, "", text)
        sub(/\*\/.*/, "", text)
    }
    if (text == "" || text ~ /^([-*#|`]|[0-9]+\.) ?/)
        finish()
    if (paragraph == "")
        begin = FILENAME ":" FNR
    sub(/^([-*]|[0-9]+\.) +/, "", text)
    if (text != "")
        paragraph = paragraph text " "
}

END {
    finish()
    for (folder in seen) {
        if (count[folder] + 0 > most[folder] + 0) {
            print folder ": " count[folder] " sentences against the rules for prose, at most " most[folder] + 0 ": see scripts/comment_prose.awk"
            failed = 1
        }
        if (count[folder] + 0 < most[folder] + 0)
            print folder ": " count[folder] + 0 " sentences: lower its number in scripts/comment_prose.txt"
    }
    exit failed
}
