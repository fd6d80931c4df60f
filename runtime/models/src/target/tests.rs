use super::*;

#[test]
fn settings_that_every_request_would_be_refused_for_are_refused() {
    let check = |api, thinking, max, expected| {
        let target = Target { thinking, ..Target::new(api, "p", "m", max) };
        assert_eq!(target.check(), expected, "{api}");
    };
    check(Api::Anthropic, Thinking::Default, 0, Err(TargetError::NoOutput));
    check(Api::Anthropic, Thinking::Budget(1024), 8192, Ok(()));
    check(Api::Anthropic, Thinking::Budget(1023), 8192, Err(TargetError::Budget { budget: 1023, max: 8192 }));
    check(Api::Anthropic, Thinking::Budget(8192), 8192, Err(TargetError::Budget { budget: 8192, max: 8192 }));
    check(Api::Chat, Thinking::Budget(2000), 8192, Err(TargetError::NoBudget(Api::Chat)));
    check(Api::Responses, Thinking::Budget(2000), 8192, Err(TargetError::NoBudget(Api::Responses)));
    check(Api::Gemini, Thinking::Budget(0), 8192, Ok(()));
    check(Api::Responses, Thinking::Effort("high".to_owned()), 8192, Ok(()));
}
