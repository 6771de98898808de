//! Cues in the other languages of the data: few, strong and cheap.
//!
//! Lower case. ASCII cues match whole words, the others match anywhere.

/// Cues of constraints.
pub(super) const CONSTRAINTS: [&str; 62] = [
    // Spanish
    "debes",
    "nunca",
    "siempre",
    "no uses",
    "no toques",
    "no cambies",
    "evita",
    "prefiero",
    "tienes que",
    "asegúrate",
    // German
    "du musst",
    "müssen",
    "niemals",
    "immer",
    "auf keinen fall",
    "bitte nicht",
    "verwende",
    "stelle sicher",
    "vermeide",
    "darf nicht",
    "dürfen nicht",
    "ändere nicht",
    // French
    "tu dois",
    "vous devez",
    "il faut",
    "ne jamais",
    "jamais",
    "toujours",
    "n'utilise pas",
    "ne touche pas",
    "évite",
    "assure-toi",
    // Portuguese
    "você deve",
    "sempre",
    "não use",
    "não altere",
    "não mude",
    "evite",
    // Italian
    "devi",
    "sempre e solo",
    "non usare",
    "non toccare",
    "mai",
    // Russian
    "нельзя",
    "всегда",
    "никогда",
    "обязательно",
    "не используй",
    "не трогай",
    "должен",
    // Japanese
    "しないで",
    "必ず",
    "禁止",
    "使わないで",
    "絶対に",
    "変更しない",
    "なければならない",
    // Korean
    "하지 마",
    "반드시",
    "절대",
    "해야 합니다",
    "사용하지",
];
/// Cues of corrections.
pub(super) const CORRECTIONS: [&str; 16] = [
    "quise decir",
    "en realidad",
    "eso no es",
    "nein,",
    "sondern",
    "ich meinte",
    "je voulais dire",
    "en fait",
    "plutôt que",
    "na verdade",
    "違います",
    "じゃなくて",
    "ではなく",
    "아니라",
    "не так",
    "я имел в виду",
];
/// Cues of the model's decisions and findings.
pub(super) const DECISIONS: [&str; 14] = [
    "he decidido",
    "usaré",
    "ich verwende",
    "ich habe mich für",
    "die ursache ist",
    "j'ai décidé",
    "je vais utiliser",
    "decidi",
    "vou usar",
    "原因は",
    "ことにしました",
    "を採用",
    "решил",
    "причина в",
];
/// Cues of outcomes.
pub(super) const OUTCOMES: [&str; 14] = [
    "las pruebas pasan",
    "he corregido",
    "está listo",
    "alle tests",
    "ist behoben",
    "ist fertig",
    "les tests passent",
    "est corrigé",
    "os testes passam",
    "修正しました",
    "完了しました",
    "追加しました",
    "готово",
    "исправлено",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::language::matcher::Matcher;

    fn holds(lower: &str, cues: &[&'static str]) -> bool {
        Matcher::default().with(1, cues).groups_in(lower) == 1
    }

    #[test]
    fn demands_are_recognised_and_talk_is_not() {
        for sentence in [
            "nunca borres la base de datos",
            "bitte nicht die tests ändern, verwende rust",
            "il faut garder l'api",
            "não altere o esquema",
            "никогда не удаляй тесты",
            "テストを変更しないでください",
            "테스트를 삭제하지 마세요",
        ] {
            assert!(holds(sentence, &CONSTRAINTS), "{sentence}");
        }
        for sentence in [
            "hola, ¿qué tal?",
            "das ist gut",
            "c'est bien",
            "映画が好きです",
            "мне нравится фильм",
            "the email is maintained",
        ] {
            assert!(!holds(sentence, &CONSTRAINTS), "{sentence}");
        }
    }

    #[test]
    fn corrections_decisions_and_outcomes() {
        assert!(
            holds("nein, ich meinte den anderen", &CORRECTIONS) && holds("赤ではなく青です", &CORRECTIONS)
        );
        assert!(
            holds("ich verwende eine hashtabelle", &DECISIONS)
                && holds("los tests: las pruebas pasan", &OUTCOMES)
        );
    }
}
