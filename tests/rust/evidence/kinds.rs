//! Each kind of fact, seen from outside: what is found, in which message, and that a document reads back.

use foldline::evidence::{FileOp, NameKind, parse, render};

use super::{anthropic, assistant, bash, call, files, quarter, result, summary, texts, user};

#[test]
fn corrections_are_told_from_constraints_and_requests() {
    let found = anthropic(&[
        user("No, this is the first request, it corrects nothing."),
        assistant("I wrote it to a.json."),
        user("No, not JSON, use TOML. Never write to /etc."),
        assistant("Done."),
        user("不对，应该是 b.toml。"),
        assistant("Done."),
    ]);
    assert_eq!(texts(&found.corrections), ["No, not JSON, use TOML.", "不对，应该是 b.toml。"]);
    assert_eq!(texts(&found.constraints), ["Never write to /etc."]);
    assert_eq!(found.corrections[0].message, 2);
}

#[test]
fn labelled_lines_are_statements_or_constraints_as_a_whole() {
    let found = anthropic(&[
        user("Fix it."),
        assistant("Sure."),
        user("NOTE: the database is in Tokyo. It is slow.\nRULE: never restart it. Ask first."),
    ]);
    assert_eq!(texts(&found.statements), ["NOTE: the database is in Tokyo. It is slow."]);
    assert_eq!(texts(&found.constraints), ["RULE: never restart it. Ask first."]);
}

#[test]
fn a_question_is_open_until_the_model_speaks() {
    let asked = [user("Fix it."), assistant("Fixed."), user("Is it fast? And which port does it use?")];
    let found = anthropic(&asked);
    assert_eq!(texts(&found.questions), ["Is it fast?", "And which port does it use?"]);
    let answered = anthropic(&[&asked[..], &[assistant("Port 80.")]].concat());
    assert!(answered.questions.is_empty());
    assert_eq!(texts(&anthropic(&[user("它快吗？")]).questions), ["它快吗？"]);
}

#[test]
fn identifiers_and_numbers_are_named_with_what_they_are() {
    let found = anthropic(&[
        user("The staging host is https://api.x.internal/v2 and the budget cap is $450 total."),
        assistant("I deploy release v2.3.1 to region eu-north-1."),
        user("Ticket ABC-42 says the timeout must stay below 250 ms."),
    ]);
    let named: Vec<_> =
        found.identifiers.iter().map(|name| (name.text.as_str(), name.kind, name.by_user)).collect();
    assert_eq!(
        named,
        [
            ("https://api.x.internal/v2", NameKind::Url, true),
            ("v2.3.1", NameKind::Version, false),
            ("eu-north-1", NameKind::Id, false),
            ("ABC-42", NameKind::Id, true),
        ]
    );
    let numbers: Vec<_> = found.numbers.iter().map(|name| name.phrase.as_str()).collect();
    assert_eq!(numbers, ["and the budget cap is $450", "the timeout must stay below 250 ms"]);
}

#[test]
fn a_commit_is_an_identifier() {
    let found = anthropic(&[
        bash("1", "git add a.rs && git commit -m 'Fix'"),
        result("1", "[main 1a2b3c4] Fix\n 1 file", false),
    ]);
    assert_eq!(found.identifiers[0].phrase, "commit 1a2b3c4: Fix");
}

#[test]
fn lines_that_were_read_are_known() {
    let found = anthropic(&[
        call("1", "Read", r#"{"file_path":"/r/a.rs","offset":10,"limit":10}"#),
        result("1", "…", false),
        bash("2", "cd /r && sed -n '20,40p' a.rs"),
        result("2", "…", false),
        call("3", "Read", r#"{"file_path":"/r/b.rs"}"#),
        result("3", "…", false),
        bash("4", "sed -n '1,5p' /r/a.rs"),
        result("4", "Exit code 1\nsed: can't read /r/a.rs: No such file or directory", true),
    ]);
    assert_eq!(files(&found), [("/r/a.rs", &[FileOp::Read][..]), ("/r/b.rs", &[FileOp::Read])]);
    assert_eq!(
        (found.files[0].lines.as_slice(), found.files[1].lines.as_slice()),
        (&[(10, 40)][..], &[][..])
    );
}

#[test]
fn shells_and_patches_name_what_they_change() {
    let patch =
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: p.py\n*** Move to: q.py\n*** End Patch\nEOF";
    let found = anthropic(&[
        bash("1", "sed -i 's/a/b/' s.rs && echo x > r.txt && git mv old.md new.md"),
        result("1", "", false),
        bash("2", patch),
        result("2", "Done", false),
        bash("3", "cat > h.go <<'EOF'\nrm wrong.txt\nEOF"),
        result("3", "", false),
        bash("4", "git checkout -- g.rs && sed -i 's/a/b/' t.rs && git checkout -- t.rs"),
        result("4", "", false),
    ]);
    assert_eq!(
        files(&found),
        [
            ("s.rs", &[FileOp::Edited][..]),
            ("r.txt", &[FileOp::Written]),
            ("old.md", &[FileOp::Moved]),
            ("new.md", &[FileOp::Created]),
            ("p.py", &[FileOp::Moved]),
            ("q.py", &[FileOp::Created]),
            ("h.go", &[FileOp::Written]),
        ]
    );
}

#[test]
fn chinese_facts_of_every_kind() {
    let found = anthropic(&[
        user("帮我优化这个接口。预算上限是500元，端口是8080。注意：数据库在东京，重启很慢。"),
        assistant("问题在于缓存没有命中，所以接口响应很慢。"),
        user("重要：线上不能停机。\n超时改成30秒。"),
        assistant("我决定采用连接池来解决这个问题。缓存问题已修复。"),
        user("什么时候可以发布？"),
    ]);
    assert_eq!(texts(&found.constraints), ["重要：线上不能停机。"]);
    assert_eq!(texts(&found.corrections), ["超时改成30秒。"]);
    assert_eq!(
        texts(&found.decisions),
        ["问题在于缓存没有命中，所以接口响应很慢。", "我决定采用连接池来解决这个问题。"]
    );
    assert_eq!(texts(&found.done), ["缓存问题已修复。"]);
    assert_eq!(texts(&found.questions), ["什么时候可以发布？"]);
    assert_eq!(found.identifiers[0].text, "8080");
    let numbers: Vec<&str> = found.numbers.iter().map(|name| name.text.as_str()).collect();
    assert_eq!(numbers, ["500元", "30秒"]);
}

#[test]
fn constraints_in_other_languages_of_the_data() {
    for sentence in [
        "Nunca borres la base de datos.",
        "Bitte nicht die Tests ändern.",
        "Il faut garder la même API.",
        "テストを変更しないでください。",
        "테스트를 삭제하지 마세요.",
        "Не используй глобальные переменные.",
    ] {
        assert_eq!(texts(&anthropic(&[user("ok"), user(sentence)]).constraints), [sentence]);
    }
}

#[test]
fn new_kinds_read_back_from_the_document() {
    let found = anthropic(&[
        user("Start."),
        assistant("Ok."),
        user("No, use port 8443 instead of the old one."),
        user("NOTE: the staging host is https://x.internal/v2, ask Ann."),
        user("Ticket ABC-42 waits 30 minutes. Shall we go?"),
    ]);
    let first = render(&found, &quarter, 2_000).unwrap();
    let again = parse(&first, 0);
    assert_eq!(texts(&again.corrections), texts(&found.corrections));
    // A statement stands among the constraints.
    assert!(texts(&again.constraints).contains(&found.statements[0].text.as_str()));
    assert_eq!(texts(&again.questions), texts(&found.questions));
    let second = render(&anthropic(&[summary(&first)]), &quarter, 2_000).unwrap();
    assert_eq!(second, first);
}

#[test]
fn a_name_that_another_item_holds_is_not_repeated() {
    let found = anthropic(&[
        user("Fix ticket ABC-42."),
        assistant("ABC-42 is fixed. ZZZ-9 is next."),
        assistant("ZZZ-9 goes on."),
    ]);
    let text = render(&found, &quarter, 2_000).unwrap();
    assert!(!text.contains("Identifier: ") || !text.contains("Identifier: Fix ticket ABC-42"), "{text}");
    assert!(text.contains("ZZZ-9"), "{text}");
}
